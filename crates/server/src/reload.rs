//! A new configuration while the server runs: what may change, and what keeps its value until the
//! next start.
//!
//! ```text
//!   SIGHUP, POST /api/v1/reload ──▶ the source reads the configuration again
//!                                     │ not valid, a file cannot be used: nothing changes
//!                                     ▼
//!                                   the table says what may change ──▶ settings, keys, certificate,
//!                                     │                                 log, core
//!                                     └▶ what may not: named in the report, and kept
//! ```
//!
//! Nothing here ends a session or a connection. A limit that is lower than what is in use refuses
//! what comes from then on.

use crate::access::AccessControl;
use crate::buffer_memory::buffer_memory;
use crate::clients::{CLIENT_UNPLAYED, ClientLimit};
use crate::config::ClusterConfig;
use crate::copy_source::CopySource;
use crate::log::Log;
use crate::messages::{CoreHandle, Event};
use crate::opening::NotOpened;
use crate::restart::Restart;
use crate::shared::{LiveSettings, Shared};
use crate::tls::ServerTls;
use crate::{ServerConfig, exposure, wire};
use device::MemoryLimits;
use http_service::TlsFiles;
use serde_json::json;
use std::fmt::{self, Debug};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use store::Store;
use units::{Hinted, Reason};

/// What becomes of a changed option in a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionChange {
    /// The new value is used from then on.
    Reload,
    /// A new value is used from then on; an option that was not given, or is given no more, needs a
    /// restart.
    ReloadIfGiven,
    /// The old value is kept until the next start.
    Restart,
}

/// An option of `serve`, and what becomes of it when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOption {
    /// The option without its dashes.
    pub name: &'static str,
    /// What becomes of a new value.
    pub change: OptionChange,
    value: String,
}

/// The options of a configuration. Each field of [`ServerConfig`] that an option sets is one.
pub fn config_options(config: &ServerConfig) -> Vec<ConfigOption> {
    use OptionChange::{Reload, ReloadIfGiven, Restart};
    fn of(name: &'static str, change: OptionChange, value: &dyn Debug) -> ConfigOption {
        ConfigOption { name, change, value: format!("{value:?}") }
    }
    // Every field is named, so that none is added without a row or a place among the last.
    let ServerConfig {
        stores,
        listen,
        rtsp,
        policy,
        survive_loss,
        memory,
        network,
        slot,
        startup,
        wait,
        read_size,
        segment,
        recalibrate_after,
        scrub,
        throttle,
        as_disk,
        buffered,
        tls,
        http2,
        insecure,
        fills,
        tokens,
        uploads,
        ingest_from,
        mount,
        mount_rate,
        mount_spool,
        webhook,
        auth_request,
        otlp,
        cluster,
        copies,
        title_keys,
        access_log,
        grace,
        max_connections,
        max_client_connections,
        max_client_unplayed,
        http_threads: _,
        send_timeout: _,
        head_timeout: _,
        idle_timeout: _,
        rtsp_timeout: _,
        title_memory: _,
        reservation_hold: _,
        idle_after: _,
        session_timeout: _,
    } = config;
    let [certificate, key] =
        [tls.as_ref().map(|files| &files.certificate), tls.as_ref().map(|files| &files.key)];
    let (url, secret) = (webhook.as_ref().map(|to| &to.url), webhook.as_ref().map(|to| &to.secret));
    let auth = auth_request.as_ref();
    let cluster_of = |part: fn(&ClusterConfig) -> String| cluster.as_ref().map(part);
    let copies_of = |part: fn(&CopySource) -> String| copies.as_ref().map(part);
    vec![
        of("stores", Restart, stores),
        of("listen", Restart, listen),
        of("rtsp", Restart, rtsp),
        of("admission", Restart, policy),
        of("survive-loss", Restart, survive_loss),
        of("memory", Restart, memory),
        of("network", Reload, network),
        of("slot", Restart, slot),
        of("startup", Restart, startup),
        of("wait", Reload, wait),
        of("read-size", Restart, read_size),
        of("recalibrate-after", Restart, recalibrate_after),
        of("scrub", Restart, scrub),
        of("segment", Restart, segment),
        of("throttle", Restart, throttle),
        of("as-disk", Restart, as_disk),
        of("buffered", Restart, buffered),
        of("tls-certificate", ReloadIfGiven, &certificate),
        of("tls-key", ReloadIfGiven, &key),
        of("http2", Restart, http2),
        of("insecure", Reload, insecure),
        of("tokens", Reload, tokens),
        of("title-keys", Restart, title_keys),
        of("origin", Reload, fills),
        of("uploads", Restart, uploads),
        of("ingest-from", Restart, ingest_from),
        of("mount", Restart, mount),
        of("mount-rate", Restart, mount_rate),
        of("mount-spool", Restart, mount_spool),
        of("webhook", Restart, &url),
        of("webhook-secret", Restart, &secret),
        of("auth-request", Reload, &auth.map(|to| &to.url)),
        of("auth-request-timeout", Reload, &auth.map(|to| to.timeout)),
        of("auth-request-unanswered", Reload, &auth.map(|to| to.unanswered)),
        of("auth-request-secret", Reload, &auth.map(|to| &to.secret)),
        of("otlp", Restart, &otlp.as_ref().map(|to| &to.url)),
        of("otlp-traced", Restart, &otlp.as_ref().map(|to| to.traced)),
        of("cluster", Restart, &cluster_of(|it| format!("{:?}", it.etcd))),
        of("cluster-name", Restart, &cluster_of(|it| it.name.to_string())),
        of("etcd-cert", Restart, &cluster_of(|it| format!("{:?}", it.etcd_access.certificate))),
        of("etcd-key", Restart, &cluster_of(|it| format!("{:?}", it.etcd_access.key))),
        of("etcd-user", Restart, &cluster_of(|it| format!("{:?}", it.etcd_access.user))),
        of("node", Restart, &cluster_of(|it| it.node.to_string())),
        of("node-address", Restart, &cluster_of(|it| it.address.clone())),
        of("node-rtsp-address", Restart, &cluster_of(|it| format!("{:?}", it.rtsp_address))),
        of("rack", Restart, &cluster_of(|it| format!("{:?}", it.rack))),
        of("cluster-secret", Restart, &cluster_of(|it| format!("{:?}", it.secret))),
        of("bucket", Restart, &copies_of(|it| it.bucket.to_string())),
        of("bucket-endpoint", Restart, &copies_of(|it| it.bucket.endpoint().to_owned())),
        of("fill", Restart, &copies_of(|it| format!("{:?}", it.windows))),
        of("fill-rate", Restart, &copies_of(|it| it.rate.to_string())),
        of("access-log", ReloadIfGiven, access_log),
        of("max-connections", Reload, max_connections),
        of("max-client-connections", Reload, max_client_connections),
        of("max-client-unplayed", Reload, max_client_unplayed),
        of("grace", Reload, grace),
    ]
}

/// `current` with what may change of `wanted`.
fn effective(current: &ServerConfig, wanted: &ServerConfig) -> ServerConfig {
    let wanted = wanted.clone();
    ServerConfig {
        network: wanted.network,
        wait: wanted.wait,
        tls: if_given(current.tls.as_ref(), wanted.tls),
        insecure: wanted.insecure,
        tokens: wanted.tokens,
        auth_request: wanted.auth_request,
        fills: wanted.fills,
        access_log: if_given(current.access_log.as_ref(), wanted.access_log),
        max_connections: wanted.max_connections,
        max_client_connections: wanted.max_client_connections,
        max_client_unplayed: wanted.max_client_unplayed,
        grace: wanted.grace,
        ..current.clone()
    }
}

fn if_given<T: Clone>(current: Option<&T>, wanted: Option<T>) -> Option<T> {
    current.map(|current| wanted.unwrap_or_else(|| current.clone()))
}

/// The configuration of a running server, and where a new one comes from.
pub(crate) struct Reloader {
    current: Mutex<ServerConfig>,
    source: OnceLock<Box<dyn Fn() -> Result<ServerConfig, Reason> + Send + Sync>>,
    /// Whether another server takes this one's place.
    pub(crate) restart: Restart,
    shared: Arc<Shared>,
    core: CoreHandle,
}

impl Reloader {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn new(config: ServerConfig, shared: Arc<Shared>, core: CoreHandle) -> Self {
        let (current, restart) = (Mutex::new(config), Restart::new(Arc::clone(&shared)));
        Self { current, source: OnceLock::new(), restart, shared, core }
    }

    /// Where a new configuration comes from; the first call counts.
    pub(crate) fn read_from(
        &self,
        source: impl Fn() -> Result<ServerConfig, Reason> + Send + Sync + 'static,
    ) {
        let _ = self.source.set(Box::new(source));
    }

    /// Time for which viewers may continue after a request to stop, as configured now.
    pub(crate) fn grace(&self) -> Duration {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).grace
    }

    /// Reads the configuration again, and uses what may change of it. If it cannot be used, nothing
    /// changes.
    pub(crate) fn reload(&self) -> Result<wire::ReloadReport, Reason> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.try_reload(&mut current);
        self.shared.log.line(|| match &result {
            Ok(report) => json!({
                "event": "configuration-reloaded",
                "changed": report.changed,
                "needs_restart": report.needs_restart,
                "missing_stores": report.missing_stores,
            }),
            Err(why) => json!({ "event": "configuration-not-reloaded", "error": why.one_line() }),
        });
        result
    }

    /// The lines for people that have not been shown.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.shared.take_notices()
    }

    /// Lets another server take this one's place, if the program that is to come can be used.
    pub(crate) fn restart(&self) -> Result<(), Reason> {
        let result = self.check_addresses().and_then(|()| self.restart.request());
        self.shared.log.line(|| match &result {
            Ok(()) => json!({ "event": "restart" }),
            Err(why) => json!({ "event": "not-restarted", "error": why.one_line() }),
        });
        result
    }

    /// Whether the addresses that are to be listened on next are free, where they are others.
    fn check_addresses(&self) -> Result<(), Reason> {
        let Some(source) = self.source.get() else { return Ok(()) };
        let wanted = source()?;
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = [Some(current.listen), current.rtsp];
        let ports = now.map(|address| address.map_or(0, |address| address.port()));
        for address in [Some(wanted.listen), wanted.rtsp].into_iter().flatten() {
            // The server's own sockets on a port are closed before another address has it.
            if !now.contains(&Some(address)) && !ports.contains(&address.port()) {
                TcpListener::bind(address).map_err(|error| {
                    Reason::new(format!("cannot listen on {address}: {error}"), "choose another")
                })?;
            }
        }
        Ok(())
    }

    fn try_reload(&self, current: &mut ServerConfig) -> Result<wire::ReloadReport, Reason> {
        let Some(source) = self.source.get() else {
            let why = "this server has no configuration that it could read again";
            return Err(Reason::new(why, "start it again"));
        };
        let wanted = source()?;
        let known = MemoryLimits::of_this_process().as_ref().map(MemoryLimits::read);
        wanted.check(buffer_memory(wanted.memory, known)?.size)?;
        let next = effective(current, &wanted);
        exposure::check(&next)?;
        let missing_stores = missing_stores(current, &wanted)?;
        // All that can fail comes before the first change.
        let keys = AccessControl::read(next.tokens.as_deref())?;
        let auth = self.shared.auth.prepare(next.auth_request.as_ref())?;
        let certificate = next.tls.as_ref().map(TlsFiles::read).transpose()?;
        let log = next.access_log.as_deref().map(Log::open).transpose()?;

        self.shared.access.replace(keys);
        self.shared.auth.replace(auth);
        let tls = self.shared.tls.as_deref().zip(next.tls.as_ref()).zip(certificate);
        if let Some(((tls, files), certificate)) = tls {
            ServerTls::replace(tls, files, certificate);
        }
        // A file that was renamed is left to whoever renamed it (logrotate).
        log.into_iter().for_each(|out| self.shared.log.go_on_in(out));
        self.shared.set_settings(LiveSettings::of(&next));
        self.core.send(Event::Reconfigure {
            network: next.network,
            fills: next.fills.unwrap_or(0),
            unplayed: ClientLimit::new(next.max_client_unplayed, CLIENT_UNPLAYED),
        });
        let report = wire::ReloadReport { missing_stores, ..report(current, &next, &wanted) };
        *current = next;
        Ok(report)
    }
}

/// What differs between the configuration before, now, and as it is wanted.
fn report(before: &ServerConfig, now: &ServerConfig, wanted: &ServerConfig) -> wire::ReloadReport {
    let [before, now, wanted] = [before, now, wanted].map(config_options);
    let differ = |one: &[ConfigOption], other: &[ConfigOption]| -> Vec<String> {
        let pairs = one.iter().zip(other).filter(|(one, other)| one.value != other.value);
        pairs.map(|(one, _)| one.name.to_owned()).collect()
    };
    wire::ReloadReport {
        changed: differ(&before, &now),
        needs_restart: differ(&now, &wanted),
        missing_stores: Vec::new(),
    }
}

/// The new stores of a configuration that the next start would be without, because they are not
/// there. One that is there and cannot be served is an error, as it would be at the start.
fn missing_stores(
    before: &ServerConfig,
    wanted: &ServerConfig,
) -> Result<Vec<wire::MissingStoreReport>, Reason> {
    let mut missing = Vec::new();
    for path in wanted.stores.iter().filter(|path| !before.stores.contains(path)) {
        match Store::peek(path).map_err(|error| NotOpened::of(path, &error)) {
            Ok(_) => {}
            Err(NotOpened::Refused(reason)) => return Err(reason),
            Err(NotOpened::Lost(reason)) => missing.push(wire::MissingStoreReport {
                store: path.display().to_string(),
                reason: reason.one_line(),
            }),
        }
    }
    Ok(missing)
}

impl Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuthRequestTarget, OtlpTarget, TracedPart, Unanswered, WebhookTarget};
    use director::etcd::EtcdAccess;
    use units::{BitRate, ByteCount};

    /// A configuration in which every option has another value than in the default one.
    fn other() -> ServerConfig {
        let second = Duration::from_secs(2);
        ServerConfig {
            stores: vec!["b".into()],
            listen: "127.0.0.1:1".parse().unwrap(),
            rtsp: "127.0.0.1:2".parse().ok(),
            policy: scheduler::PolicyKind::None,
            survive_loss: true,
            memory: Some(ByteCount::MIB),
            network: Some(BitRate(1)),
            slot: second,
            startup: second * 2,
            wait: second,
            read_size: Some(ByteCount::MIB),
            segment: second,
            recalibrate_after: None,
            scrub: None,
            throttle: Some(BitRate(1)),
            as_disk: disk::DiskModel::preset("ssd-sata"),
            buffered: true,
            tls: Some(TlsFiles { certificate: "c".into(), key: "k".into() }),
            http2: false,
            insecure: true,
            fills: Some(1),
            tokens: Some("t".into()),
            title_keys: Some("k".into()),
            uploads: Some("u".into()),
            ingest_from: vec!["https://".parse().unwrap()],
            mount: Some("m".into()),
            mount_rate: Some(store::ReservedRate::Title),
            mount_spool: "s".into(),
            auth_request: Some(AuthRequestTarget {
                url: "a".to_owned(),
                timeout: second,
                unanswered: Unanswered::Allow,
                secret: Some("s".into()),
            }),
            otlp: OtlpTarget::new(Some("o".to_owned()), TracedPart::ALL, |_| None),
            webhook: Some(WebhookTarget { url: "w".to_owned(), secret: Some("s".into()) }),
            cluster: Some(ClusterConfig {
                etcd: vec!["http://127.0.0.1:2379".parse().unwrap()],
                etcd_access: EtcdAccess {
                    certificate: Some("c".into()),
                    key: Some("k".into()),
                    user: Some("u".into()),
                },
                name: cluster::ClusterName::new("c").unwrap(),
                node: cluster::NodeId::new("n").unwrap(),
                address: "http://127.0.0.1:8080".to_owned(),
                rtsp_address: Some("rtsp://127.0.0.1:8554".to_owned()),
                rack: Some("r".to_owned()),
                secret: "s".into(),
            }),
            copies: Some(CopySource {
                bucket: bucket::TitleBucket::new(
                    s3::S3Access::default(),
                    s3::S3Address::parse("s3://b").unwrap(),
                ),
                windows: vec!["02:00-14:00".parse().unwrap()],
                rate: BitRate(1),
            }),
            access_log: Some("l".into()),
            max_connections: 1,
            max_client_connections: Some(1),
            max_client_unplayed: Some(1),
            grace: second,
            ..ServerConfig::default()
        }
    }

    #[test]
    fn the_table_says_what_changes_and_the_report_names_the_rest() {
        let (default, other) = (ServerConfig::default(), other());
        let with_files = ServerConfig {
            tls: Some(TlsFiles { certificate: "a".into(), key: "b".into() }),
            access_log: Some("a".into()),
            ..default.clone()
        };
        for (current, is_given) in [(default, false), (with_files, true)] {
            let next = effective(&current, &other);
            let options = config_options(&current).into_iter().zip(config_options(&next));
            for ((before, now), wanted) in options.zip(config_options(&other)) {
                assert_ne!(before.value, wanted.value, "{}", wanted.name);
                let changes = match wanted.change {
                    OptionChange::Reload => true,
                    OptionChange::ReloadIfGiven => is_given,
                    OptionChange::Restart => false,
                };
                let value = if changes { &wanted.value } else { &before.value };
                assert_eq!(&now.value, value, "{}", now.name);
            }
            let report = report(&current, &next, &other);
            let all = report.changed.len() + report.needs_restart.len();
            assert_eq!(all, config_options(&other).len());
            assert_eq!(report.changed.contains(&"access-log".to_owned()), is_given);
            assert!(report.needs_restart.contains(&"listen".to_owned()), "{report:?}");
        }
    }
}
