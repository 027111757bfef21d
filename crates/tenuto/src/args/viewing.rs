//! Arguments of `serve`, `token` and `play`.

use super::shared::{
    CertificateArgs, EtcdArgs, OverwriteArgs, RecordBucketArgs, ReportArgs, SeedArgs,
    SwitchingArgs, TlsArgs,
};
use super::values::{
    auth_request_timeout, bandwidth, cluster_name, model, node_address, node_name,
    node_rtsp_address, reserved_rate, some_time, speed, text, token_subject, wait, whole, words,
};
use cluster::{ClusterName, NodeId};
use director::etcd::EtcdAddress;
use disk::DiskModel;
use engine::Priority;
use scheduler::PolicyKind;
use server::{AddressPrefix, DailyWindow, TracedPart, Unanswered};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use store::ReservedRate;
use tenuto_agent::address;
use tenuto_client::{Arrivals, Choice, Form, RtspTransport};
use units::{BitRate, ByteCount, parse_duration};

/// Arguments of `tenuto serve`.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The stores to serve: files or block devices.
    #[arg(required = true, value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Take options from a TOML file, and stores from its list `stores`.
    ///
    /// A key is an option without its dashes: memory = "4GiB". An environment variable such as
    /// `TENUTO_SERVE_MEMORY` goes before the file, and the command line before both.
    /// docs/reference/configuration.md lists the keys. SIGHUP lets a server read the file again,
    /// unless it was started in a terminal. SIGUSR2 starts the program anew in its place, and
    /// sessions go on.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the options and the files that they name, and end.
    ///
    /// Takes no store and no port, so that a server may have them meanwhile.
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Where viewers connect.
    ///
    /// 0.0.0.0:8080 accepts connections from the network; port 0 takes any free port. An address
    /// that is neither loopback nor private nor link-local needs --tls-certificate and --tokens, or
    /// --insecure.
    #[arg(long, default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Where RTSP players connect.
    ///
    /// Titles are then also at rtsp://ADDRESS/t/TITLE, as RTP over the connection or over UDP. Port
    /// 0 takes any free port. Without it there is no RTSP.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) rtsp: Option<SocketAddr>,
    /// The admission policy.
    ///
    /// docs/concepts/admission.md explains each. `tenuto simulate admission` compares more.
    #[arg(long, default_value = "time-domain", value_parser = words(POLICIES))]
    pub(crate) admission: PolicyKind,
    /// Admit only streams that continue on time when one disk is lost.
    ///
    /// For titles in two of the stores: capacity is reserved on the disk of the other copy, too.
    /// Without it, when a disk is lost, as many streams as fit continue there, and the other
    /// sessions end. Start-up is at least three slots.
    #[arg(long)]
    pub(crate) survive_loss: bool,
    /// Memory for media in flight.
    ///
    /// More memory allows larger reads, and reads further ahead of time. Without it a quarter of
    /// the machine's memory, or of the limit of the control group.
    #[arg(long)]
    pub(crate) memory: Option<ByteCount>,
    /// Rate that all streams together may have.
    ///
    /// The rate of the network. Without it no stream is refused because of the network.
    #[arg(long)]
    pub(crate) network: Option<BitRate>,
    /// The scheduling period.
    #[arg(long, default_value = "500ms", value_parser = parse_duration)]
    pub(crate) slot: Duration,
    /// From admission until the first media is in memory.
    ///
    /// Less than two slots is taken as two. A longer time admits more viewers at once.
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub(crate) startup: Duration,
    /// How long a player waits for its admission.
    ///
    /// A viewer for whom there is no room now is admitted if there will be within this time, and
    /// its manifest is sent then. For players that do not say it themselves (`?wait=`). At most
    /// 30 s; 0s: no player waits.
    #[arg(long, default_value = "5s", value_parser = wait)]
    pub(crate) wait: Duration,
    /// Bytes of one disk read.
    ///
    /// Without it chosen from the calibration, the rates of the titles and the memory.
    #[arg(long)]
    pub(crate) read_size: Option<ByteCount>,
    /// Age from which a calibration is repeated when nobody watches.
    ///
    /// After 5 minutes without a viewer. The measurement takes about a minute and ends at once
    /// when a viewer comes. A provisional calibration is measured again when more is stored. 0s:
    /// never.
    #[arg(long, default_value = "168h", value_parser = parse_duration, value_name = "AGE")]
    pub(crate) recalibrate_after: Duration,
    /// Time in which all titles are read once and compared with their checksums.
    ///
    /// In disk time that no viewer has reserved, a little at a time. The position is kept with the
    /// store, so that a new start goes on there. Damage is told in the log, by the webhook, in the
    /// metrics and by `tenuto info`. 0s: never.
    #[arg(long, default_value = "30d", value_parser = parse_duration, value_name = "PERIOD")]
    pub(crate) scrub: Duration,
    /// Length of a segment of HLS and DASH.
    ///
    /// Segments begin at key frames, so lengths vary with their distance. A title shorter than
    /// three segments is divided into three, of a second at least.
    #[arg(long, default_value = "4s", value_parser = parse_duration)]
    pub(crate) segment: Duration,
    /// Slow each store down to this rate.
    ///
    /// Shows how many viewers a slower disk holds.
    #[arg(long)]
    pub(crate) throttle: Option<BitRate>,
    /// Slow each store down to this disk: a model's name or a file.
    ///
    /// Reads are real, but complete when the modelled disk would have completed them, seeks and
    /// rotation included; the store's length is stretched over the whole disk. `tenuto disk
    /// models` lists the names.
    #[arg(long, value_name = "MODEL", value_parser = model)]
    pub(crate) as_disk: Option<DiskModel>,
    /// Read stores through the kernel's page cache, as most programs do.
    ///
    /// With the read-ahead of the file system, and one read at a time for each store. Nothing is
    /// guaranteed then, so that it needs --admission none.
    #[arg(long)]
    pub(crate) buffered: bool,
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,
    /// Whether clients may speak HTTP/2 over TLS.
    ///
    /// Browsers then fetch everything over one connection. Off, all speak HTTP/1.1, as caches in
    /// front of a server do.
    #[arg(long, default_value = "on", value_parser = words(SWITCH), action = clap::ArgAction::Set)]
    pub(crate) http2: bool,
    /// Listen on a public address without TLS or without tokens.
    ///
    /// For a server that a firewall, a container or a proxy keeps strangers away from.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Admit only viewers who have a token signed by a key of this file.
    ///
    /// A JSON Web Key Set, as `tenuto token KEYS --new` makes it, or an identity provider's. It is
    /// read again when it changes. Without it everybody who can connect may play and see the
    /// server's sessions and numbers.
    #[arg(long, value_name = "KEYS")]
    pub(crate) tokens: Option<PathBuf>,
    /// Encrypt titles for players with the keys of this file.
    ///
    /// A TOML file with the titles, the scheme (cbcs or cenc) and the keys, or the key server that
    /// has them (SPEKE 2.0); other users must not be able to read it. docs/guide/serve.md has an
    /// example. Titles that it does not name are sent in the clear.
    #[arg(long, value_name = "FILE")]
    pub(crate) title_keys: Option<PathBuf>,
    /// Serve caches in front, which fetch at most FILLS segments at once.
    ///
    /// Segments, or ranges of a file. A content delivery network or a caching proxy then finds
    /// every title below /origin/, under addresses that are the same for all viewers. What it
    /// fetches is admitted beside the viewers of /t/, fill by fill. With --tokens it needs a token
    /// of its own (`tenuto token --origin`).
    #[arg(long, value_name = "FILLS", value_parser = whole::<u32>(1, 10_000))]
    pub(crate) origin: Option<u32>,
    /// Take titles by upload over the admin API.
    ///
    /// A file is kept in DIRECTORY until it is ingested. At most four at a time, each no larger
    /// than the free space of its disk. docs/reference/admin.md describes the API.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) uploads: Option<PathBuf>,
    /// Take titles from these addresses, which the admin API names.
    ///
    /// Beginnings of addresses, with commas between them: https://media.example/masters/ allows
    /// what is below it, https:// every host that is not in a private network. A file is
    /// downloaded into the directory of --uploads, as far as there is room; redirects are
    /// followed within what is allowed.
    #[arg(long, value_name = "URL,URL", value_delimiter = ',', requires = "uploads")]
    pub(crate) ingest_from: Vec<AddressPrefix>,
    /// Mount each store as a file system in DIRECTORY.
    ///
    /// A store is mounted on a directory named like its file, which is made. Files are as `tenuto
    /// mount` has them; reads and writes wait for disk time that no session has reserved.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) mount: Option<PathBuf>,
    /// Reserve this rate for each media file of the mounts that is read.
    ///
    /// `title`, as the title is played, or a rate. The reservation is admitted beside the viewers
    /// when a program begins to read, and ends when it closes the file; a file that is not
    /// admitted is read without one.
    #[arg(long, value_name = "RATE", requires = "mount", value_parser = reserved_rate)]
    pub(crate) mount_rate: Option<ReservedRate>,
    /// Directory for the bytes of files that are being written to the mounts.
    ///
    /// A file becomes a title when it is closed; until then its bytes are here. It needs room for
    /// the files that are written at the same time.
    #[arg(long, value_name = "DIRECTORY", requires = "mount", default_value = "/var/tmp")]
    pub(crate) mount_spool: PathBuf,
    /// Send events to this address: ingests, slow and lost disks, late reads.
    ///
    /// JSON in a POST, over HTTP or HTTPS. docs/reference/webhooks.md lists the events.
    #[arg(long, value_name = "URL", value_parser = text())]
    pub(crate) webhook: Option<String>,
    /// Sign events with the secret in this file (HMAC-SHA256).
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(crate) webhook_secret: Option<PathBuf>,
    /// Ask this address whether a viewer may begin, before each session.
    ///
    /// JSON in a POST, over HTTP or HTTPS: 2xx is yes, 401 and 403 are no. docs/guide/serve.md has
    /// an example. Caches, other nodes and operators are not asked about.
    #[arg(long, value_name = "URL", value_parser = text())]
    pub(crate) auth_request: Option<String>,
    /// How long a viewer waits for the answer of --auth-request.
    ///
    /// From 100 ms to 30 s. For a viewer of a director it is 600 ms at most.
    #[arg(long, value_name = "TIME", requires = "auth_request", default_value = "2s")]
    #[arg(value_parser = auth_request_timeout)]
    pub(crate) auth_request_timeout: Duration,
    /// What becomes of a viewer when --auth-request gives no answer.
    #[arg(long, requires = "auth_request", default_value = "refuse", value_parser = words([
        ("refuse", "the viewer is refused, with 503", Unanswered::Refuse),
        ("allow", "the viewer may begin, without limits", Unanswered::Allow),
    ]))]
    pub(crate) auth_request_unanswered: Unanswered,
    /// Sign the questions of --auth-request with the secret in this file.
    ///
    /// With HMAC-SHA256, as webhooks are.
    #[arg(long, value_name = "FILE", requires = "auth_request")]
    pub(crate) auth_request_secret: Option<PathBuf>,
    /// Send spans of sessions and the log to this collector of OpenTelemetry.
    ///
    /// OTLP over HTTP, such as http://127.0.0.1:4318. Without it what OTEL_EXPORTER_OTLP_ENDPOINT
    /// names, or none. docs/reference/opentelemetry.md lists the spans and the variables.
    #[arg(long, value_name = "URL", value_parser = text())]
    pub(crate) otlp: Option<String>,
    /// Trace this part of the sessions, from 0 to 1.
    ///
    /// A player or a proxy that sends a `traceparent` field decides itself.
    #[arg(long, value_name = "PART", default_value = "1")]
    pub(crate) otlp_traced: TracedPart,
    /// Be a node of a cluster, whose state is in this etcd.
    ///
    /// Addresses of its members, separated by commas. Directors (`tenuto director`) of the same
    /// cluster send viewers then. docs/guide/fleet.md shows the use.
    #[arg(long, value_name = "URL,URL", value_delimiter = ',', requires_all = OF_A_CLUSTER)]
    pub(crate) cluster: Vec<EtcdAddress>,
    #[command(flatten)]
    pub(crate) etcd: EtcdArgs,
    /// Name of the cluster.
    ///
    /// Clusters of different names may share an etcd.
    #[arg(long, value_name = "NAME", value_parser = cluster_name, requires = "cluster")]
    pub(crate) cluster_name: Option<ClusterName>,
    /// Name of this node, which no other node of the cluster has.
    #[arg(long, value_name = "NAME", value_parser = node_name, requires = "cluster")]
    pub(crate) node: Option<NodeId>,
    /// Where viewers reach this node: http://HOST:PORT or https://HOST:PORT.
    ///
    /// Directors send viewers to it, and ask the node itself there.
    #[arg(long, value_name = "URL", value_parser = node_address, requires = "cluster")]
    pub(crate) node_address: Option<String>,
    /// Where viewers reach this node over RTSP: rtsp[s]://HOST:PORT.
    ///
    /// Behind NAT or a load balancer; elsewhere it is the host of --node-address and the port of
    /// --rtsp.
    #[arg(long, value_name = "URL", value_parser = node_rtsp_address)]
    #[arg(requires_all = ["cluster", "rtsp"])]
    pub(crate) node_rtsp_address: Option<String>,
    /// What fails together with this node, such as its rack.
    #[arg(long, value_name = "NAME", value_parser = text(), requires = "cluster")]
    pub(crate) rack: Option<String>,
    /// File with the secret that all nodes and directors of the cluster share.
    ///
    /// At least 32 bytes, readable by its owner alone: `openssl rand -hex 32` makes one.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_secret: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bucket: RecordBucketArgs,
    /// Write copies only at these times of day, such as 02:00-14:00.
    ///
    /// By the clock of this machine; several with commas between them. Without it at any time.
    #[arg(long, value_name = "TIMES", value_delimiter = ',', requires = "bucket")]
    pub(crate) fill: Vec<DailyWindow>,
    /// Rate of all copies that are written at a time, together.
    ///
    /// Time of the disks is kept for it beside viewers, as far as there is; the rest is written in
    /// time that is left over. Four copies at most, each on another disk, share it equally.
    #[arg(long, default_value = "200Mbps")]
    pub(crate) fill_rate: BitRate,
    /// Write a line per request to this file; `-` is standard error.
    #[arg(long)]
    pub(crate) access_log: Option<PathBuf>,
    /// Largest number of connections at the same time.
    ///
    /// Further connections are answered 503 and closed.
    #[arg(long, default_value = "10000", value_parser = whole::<usize>(1, 1_000_000))]
    pub(crate) max_connections: usize,
    /// Largest number of connections of one client at the same time.
    ///
    /// A client is an IPv4 address or an IPv6 network of 64 bits. Further connections are answered
    /// 429 and closed. Without it 1000, and no limit for this machine.
    #[arg(long, value_parser = whole::<usize>(1, 1_000_000))]
    pub(crate) max_client_connections: Option<usize>,
    /// Largest number of sessions that one client has begun and does not play.
    ///
    /// Further admission requests are answered 429. A session expires 15 s after its manifest if
    /// it requests no media. Without it 16, and no limit for this machine; behind a proxy on
    /// another machine all viewers are one client.
    #[arg(long, value_parser = whole::<usize>(1, 1_000_000))]
    pub(crate) max_client_unplayed: Option<usize>,
    /// Time for which viewers may continue after a signal to stop.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto token`.
#[derive(clap::Args)]
pub(crate) struct TokenArgs {
    /// The JSON Web Key Set of the server.
    #[arg(value_name = "KEYS")]
    pub(crate) keys: PathBuf,
    /// Make KEYS with a new secret, and no token.
    #[arg(long)]
    pub(crate) new: bool,
    /// A title that the token opens; `*` at its end: all that begin so.
    ///
    /// May be given several times. Without it every title.
    #[arg(long, value_parser = text())]
    pub(crate) title: Vec<String>,
    /// How long the token is valid, from now.
    ///
    /// A session goes on when its token expires.
    #[arg(long, default_value = "12h", value_parser = some_time)]
    pub(crate) valid: Duration,
    /// The address of the client that may use the token.
    ///
    /// And the sessions that it begins. Without it any client.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<IpAddr>,
    /// The height of the largest pictures that the token opens, in pixels.
    ///
    /// Viewers get the best rendition up to it. Without it every rendition.
    #[arg(
        long,
        value_name = "PIXELS",
        conflicts_with = "origin",
        value_parser = whole::<u32>(1, 1 << 20)
    )]
    pub(crate) max_height: Option<u32>,
    /// Who goes first where there is not room for all.
    ///
    /// A viewer who would be refused takes the place of one of a lower priority, and keeps its own
    /// for longer when a disk becomes slow or is lost. Without it normal.
    #[arg(long, conflicts_with = "origin", value_parser = words([
        ("low", "the first to give way", Priority::Low),
        ("normal", "as all who say nothing else", Priority::Normal),
        ("high", "the last to give way", Priority::High),
    ]))]
    pub(crate) priority: Option<Priority>,
    /// Whose token it is, such as the number of a customer.
    ///
    /// At most 255 bytes. The server shows it with the sessions that the token begins, and lists
    /// those of one subject.
    #[arg(long, conflicts_with = "origin", value_parser = token_subject)]
    pub(crate) subject: Option<String>,
    /// Open the server's sessions, numbers and admin API, too.
    ///
    /// Its holder may remove titles.
    #[arg(long)]
    pub(crate) operator: bool,
    /// Open the addresses for caches (`serve --origin`), too.
    ///
    /// For the cache alone: it decides who may watch what it has fetched.
    #[arg(long)]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const SWITCH: [(&str, &str, bool); 2] = [("on", "", true), ("off", "", false)];

/// The admission policies that `serve` offers; `simulate` and `plan` have more, for comparison.
const POLICIES: [(&str, &str, PolicyKind); 5] = [
    (
        "time-domain",
        "guarantees every deadline; counts disk time. Without measured disk times as service-curve",
        PolicyKind::TimeDomain,
    ),
    (
        "service-curve",
        "guarantees every deadline; counts the fewest reads measured in any number of slots. Without \
         such measurements as vbrsim",
        PolicyKind::ServiceCurve,
    ),
    ("vbrsim", "guarantees every deadline; counts reads of one size", PolicyKind::VbrSim),
    (
        "observed",
        "no guarantee; vbrsim with the fewest reads observed in a slot. Without observations as vbrsim",
        PolicyKind::Observed,
    ),
    ("none", "no guarantee; admits every session", PolicyKind::None),
];

/// Arguments of `tenuto play`.
#[derive(clap::Args)]
pub(crate) struct PlayArgs {
    /// Playlists, manifests, MP4 files, RTSP, or a server with all its titles.
    #[arg(required = true, value_name = "URL", value_parser = text())]
    pub(crate) urls: Vec<String>,
    /// Number of viewers.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) viewers: u32,
    /// When viewers arrive.
    ///
    /// `all`: at once; `every:200ms`: one after the other; `poisson:500ms`: independently, with
    /// this mean time between two.
    #[arg(long, default_value = "all")]
    pub(crate) arrivals: Arrivals,
    /// How viewers choose titles.
    ///
    /// `in-turn`: the first viewer plays the first title, the second the second, and so on;
    /// `random`: each viewer draws a title, by the seed; `zipf:1.0`: the title of rank k in the
    /// list is drawn with a probability proportional to 1/k, or to a power of 1/k.
    #[arg(long, default_value = "in-turn")]
    pub(crate) choice: Choice,
    /// A file with the viewers: when each arrives, and what it plays.
    ///
    /// One viewer per line: `12.5s film`. Times count from the first of them.
    #[arg(long, value_name = "PATH")]
    pub(crate) trace: Option<PathBuf>,
    /// Mean time that a viewer stays.
    ///
    /// The times are exponentially distributed, by the seed. Without it viewers stay to the end.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) stay: Option<Duration>,
    /// How a server's titles are played.
    #[arg(long, default_value = "hls", value_parser = words([
        ("hls", "playlists and segments", Form::Hls),
        ("dash", "a manifest and segments", Form::Dash),
        ("mp4", "one file, with byte ranges", Form::Progressive),
    ]))]
    pub(crate) form: Form,
    /// How RTP comes from addresses that begin with rtsp://.
    ///
    /// The server sets the pace there: a frame that arrives later than --start-buffer after its
    /// time is a stall. There is no --skip, --switching,
    /// --wait or --save.
    #[arg(long, default_value = "tcp", value_parser = words([
        ("tcp", "in the connection", RtspTransport::Tcp),
        ("udp", "two ports for each track", RtspTransport::Udp),
    ]))]
    pub(crate) rtsp_transport: RtspTransport,
    /// Rate of each viewer's access to the network.
    ///
    /// A viewer reads from its connections, all of them together, at this rate at most; its
    /// machine acknowledges what fits into the socket buffers. Without it as fast as it comes.
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    pub(crate) bandwidth: Option<BitRate>,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// All viewers leave after this time.
    ///
    /// Without it the run ends when all viewers have reached the end of their titles.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Media that a player buffers before it begins to play.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub(crate) start_buffer: Duration,
    /// Media that a player buffers at most.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) buffer: Duration,
    /// Time without a byte after which a request has failed.
    ///
    /// A viewer whose node is silent for so long goes on at another one, if there is one. Players
    /// wait for 10 to 30 s; the default shows a slow disk as a stall and not as an error.
    #[arg(long, default_value = "30s", value_parser = some_time)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    /// Play from this time of the title.
    ///
    /// From the key frame at or before it. A Tenuto server sends only what is played.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) from: Option<Duration>,
    /// Play to this time of the title.
    ///
    /// To the last picture before it, and those that it is decoded from.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) to: Option<Duration>,
    /// Play at this speed; negative: backwards.
    ///
    /// A Tenuto server reserves the rate for it: at twice the speed, twice the rate.
    #[arg(long, allow_negative_numbers = true, value_parser = speed)]
    pub(crate) speed: Option<f64>,
    /// Leave out this many groups of pictures after each one shown.
    ///
    /// A group begins with a key frame. Sound is not played.
    #[arg(long, value_parser = whole::<u32>(0, 1_000_000))]
    pub(crate) skip: Option<u32>,
    /// Wait at most this long for admission instead of being refused.
    ///
    /// A Tenuto server answers when there is capacity for the viewer, within 30 s.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// A file with the actions of each viewer.
    ///
    /// One action per line: `10s pause`, `15s resume`, `20s seek 2min`, `30s speed -4`,
    /// `40s stop`. Times count from the viewer's arrival.
    #[arg(long)]
    pub(crate) behaviour: Option<PathBuf>,
    /// End with exit code 3 when any viewer stalls or is refused.
    ///
    /// Without it, only when no viewer was admitted.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Save the first viewer's media in this file.
    ///
    /// For HLS one file per track: film.mp4 becomes film.video.mp4 and film.audio.mp4.
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Refused viewers retry after the time in Retry-After, 66 s at most.
    #[arg(long)]
    pub(crate) retry: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    // Last, because its heading applies to all options until the next heading.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// What a node of a cluster must say of itself.
const OF_A_CLUSTER: [&str; 4] = ["cluster_name", "node", "node_address", "cluster_secret"];
