//! `director`: sends viewers to the nodes of a cluster until a signal stops it.

use crate::args::director::DirectorArgs;
use crate::failure::Failure;
use crate::{limits, out};
use director::etcd::EtcdConfig;
use director::secret::ClusterSecret;
use director::service::{DirectorService, ServiceConfig};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenuto_agent::stop_on_signals;
use units::Hinted;

pub(crate) fn director(args: &DirectorArgs) -> Result<(), Failure> {
    let secret = ClusterSecret::from_file(&args.cluster_secret)
        .map_err(|why| why.reason().about("--cluster-secret"))?;
    let stop = stop_on_signals()?;
    limits::raise_open_files();
    let config = ServiceConfig {
        listen: args.listen,
        etcd: EtcdConfig { endpoints: args.cluster.clone(), cluster: args.cluster_name.clone() },
        secret,
        survive_loss: args.survive_loss,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let service = DirectorService::start(config, out::note)?;
    let (url, cluster) = (format!("http://{}/", service.address()), args.cluster_name.as_str());
    if args.report.json {
        let address = service.address();
        out::print_json(&json!({ "address": address, "url": url, "cluster": cluster }));
    } else {
        out::print(&format!("sending viewers to the nodes of {cluster} at {url} (Ctrl-C stops)\n"));
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_FOR_SIGNALS);
    }
    service.stop();
    Ok(())
}

/// Time between two looks at the stop flag.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);
