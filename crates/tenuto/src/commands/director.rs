//! `director`: sends viewers to the nodes of a cluster until a signal stops it.

use crate::args::director::{ClusterArgs, DirectorArgs};
use crate::failure::Failure;
use crate::{limits, out};
use bucket::BucketListing;
use cluster::placement::CopyRules;
use cluster::{ContentTag, Headroom, TitleName, TitleSize};
use director::planning::{ListedTitles, PlanningConfig};
use director::secret::ClusterSecret;
use director::service::{DirectorService, PageCheck, PageKind, PageRefusal, ServiceConfig};
use serde_json::json;
use server::access::{AccessControl, TokenNeed};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tenuto_agent::stop_on_signals;
use units::Hinted;

pub(crate) fn director(args: &DirectorArgs) -> Result<(), Failure> {
    if !args.insecure {
        let has_tls = args.certificate.files().is_some();
        server::check_director(args.listen, args.rtsp, has_tls, args.tokens.is_some())?;
    }
    let secret = ClusterSecret::from_file(&args.cluster_secret)
        .map_err(|why| why.reason().about("--cluster-secret"))?;
    let stop = stop_on_signals()?;
    limits::raise_open_files();
    let ClusterArgs { cluster_name, .. } = &args.cluster;
    let config = ServiceConfig {
        listen: args.listen,
        rtsp: args.rtsp,
        tls: args.certificate.files(),
        etcd: args.cluster.etcd(),
        secret,
        headroom: args.survive_loss.unwrap_or(Headroom::None),
        keep_free: f64::from(args.keep_free) / 100.0,
        planning: planning(args)?,
        check: args.tokens.as_deref().map(page_check).transpose()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let service = DirectorService::start(config, out::note)?;
    let (scheme, s) =
        (args.certificate.scheme(), if args.certificate.files().is_some() { "s" } else { "" });
    let rtsp = service.rtsp_address().map(|address| format!("rtsp{s}://{address}/"));
    let (url, cluster) = (format!("{scheme}://{}/", service.address()), cluster_name.as_str());
    if args.report.json {
        let address = service.address();
        let report = json!({ "address": address, "url": url, "rtsp": rtsp, "cluster": cluster });
        out::print_json(&report);
    } else {
        let at = rtsp.map_or_else(|| url.clone(), |rtsp| format!("{url} and {rtsp}"));
        out::print(&format!("sending viewers to the nodes of {cluster} at {at} (Ctrl-C stops)\n"));
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_FOR_SIGNALS);
    }
    service.stop();
    Ok(())
}

/// Who may see what a director shows: whoever may see it at a node with these keys.
fn page_check(keys: &Path) -> Result<PageCheck, Failure> {
    let access = AccessControl::new(Some(keys)).map_err(|why| why.about("--tokens"))?;
    Ok(PageCheck::new(move |kind, token, client| {
        let need = match kind {
            PageKind::Title(name) => TokenNeed::Title(name),
            PageKind::Origin(name) => TokenNeed::Origin(name),
            PageKind::Titles => TokenNeed::TitleList,
            PageKind::Numbers => TokenNeed::Server,
        };
        let checked = access.check(need, token, client, SystemTime::now());
        checked.map(drop).map_err(|why| {
            let ((status, error), challenge) = (why.status(), why.challenge());
            PageRefusal { status, error, message: why.to_string(), challenge }
        })
    }))
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
        let (mut titles, mut contents) = (BTreeMap::new(), BTreeMap::new());
        for (name, title) in sized {
            let Ok(name) = TitleName::new(name) else { continue };
            titles.insert(name.clone(), TitleSize { rate: title.rate, size: title.size });
            contents.insert(name, ContentTag::of(&title.content));
        }
        let damaged = listing.damaged().iter().filter_map(|name| TitleName::new(name.clone()).ok());
        Ok(ListedTitles { titles, contents, damaged: damaged.collect() })
    };
    Ok(Some(PlanningConfig { rules, titles: Box::new(titles) }))
}

/// Time between two looks at the stop flag.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);
