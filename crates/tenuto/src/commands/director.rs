//! `director`: sends viewers to the nodes of a cluster until a signal stops it.

use crate::args::director::{ClusterArgs, DirectorArgs};
use crate::failure::Failure;
use crate::{limits, out};
use bucket::BucketListing;
use cluster::placement::CopyRules;
use cluster::{TitleName, TitleSize};
use director::etcd::EtcdConfig;
use director::planning::{ListedTitles, PlanningConfig};
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
    let ClusterArgs { cluster, cluster_name } = &args.cluster;
    let config = ServiceConfig {
        listen: args.listen,
        tls: args.certificate.files(),
        etcd: EtcdConfig { endpoints: cluster.clone(), cluster: cluster_name.clone() },
        secret,
        survive_loss: args.survive_loss,
        keep_free: f64::from(args.keep_free) / 100.0,
        planning: planning(args)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let service = DirectorService::start(config, out::note)?;
    let scheme = args.certificate.scheme();
    let (url, cluster) = (format!("{scheme}://{}/", service.address()), cluster_name.as_str());
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

/// What the director needs to plan placement, where there is a bucket.
fn planning(args: &DirectorArgs) -> Result<Option<PlanningConfig>, Failure> {
    let Some(bucket) = args.bucket.titles() else { return Ok(None) };
    bucket.check_access().map_err(|error| error.reason().about("--bucket"))?;
    let rules = CopyRules {
        least: args.copies,
        extra: f64::from(args.extra_copies) / 100.0,
        ..CopyRules::default()
    };
    let mut listing = BucketListing::new(bucket);
    let titles = move || {
        let listed = listing.refresh().map_err(|error| error.one_line())?;
        // A name with a slash cannot be that of a title of a cluster, and files have no rate.
        let sized = listed.into_iter().filter(|(_, title)| title.rate.0 > 0);
        let named = sized.filter_map(|(name, title)| {
            let size = TitleSize { rate: title.rate, size: title.size };
            Some((TitleName::new(name).ok()?, size))
        });
        let titles = named.collect();
        let damaged = listing.damaged().iter().filter_map(|name| TitleName::new(name.clone()).ok());
        Ok(ListedTitles { titles, damaged: damaged.collect() })
    };
    Ok(Some(PlanningConfig { rules, titles: Box::new(titles) }))
}

/// Time between two looks at the stop flag.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);
