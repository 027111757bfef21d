//! Arguments of `director` and `cluster`.

use super::shared::{CertificateArgs, EtcdArgs, RecordBucketArgs, ReportArgs};
use super::values::{node_name, some_time, whole, words};
use cluster::{BadName, ClusterName, Headroom, NodeId};
use director::etcd::{EtcdAddress, EtcdConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tenuto_agent::address;

/// A cluster in an etcd.
#[derive(clap::Args)]
pub(crate) struct ClusterArgs {
    /// The members of etcd that have the cluster's records.
    ///
    /// Addresses such as http://10.0.0.1:2379, with commas between them. Another member is asked
    /// when one does not answer.
    #[arg(long, required = true, value_delimiter = ',', value_name = "URL,URL")]
    pub(crate) cluster: Vec<EtcdAddress>,
    /// The name of the cluster, as its nodes have it.
    ///
    /// Several clusters can share one etcd.
    #[arg(long, required = true, value_name = "NAME", value_parser = cluster_name)]
    pub(crate) cluster_name: ClusterName,
    #[command(flatten)]
    pub(crate) etcd: EtcdArgs,
}

impl ClusterArgs {
    /// The etcd, and the cluster in it.
    pub(crate) fn etcd(&self) -> EtcdConfig {
        let Self { cluster, cluster_name, etcd } = self;
        let (endpoints, cluster) = (cluster.clone(), cluster_name.clone());
        EtcdConfig { endpoints, cluster, access: etcd.access() }
    }
}

/// The commands of `tenuto cluster`.
#[derive(clap::Subcommand)]
pub(crate) enum ClusterCommand {
    /// List the nodes of a cluster, as etcd knows them.
    ///
    /// Nodes that are registered, with what is free of their disks, and nodes that are away or
    /// drained. Titles that nodes have and the bucket lacks are named.
    Nodes(ClusterNodesArgs),
    /// Move the copies of a node to others.
    ///
    /// The director that plans placement orders each copy to be written elsewhere, and the node
    /// removes its own when the others are ready. Viewers go on; new ones are sent to other nodes
    /// that have their title. Waits until the node has no copies of titles that are in the bucket;
    /// Ctrl-C ends the wait, and the node goes on. Afterwards it can be stopped for good, or --undo
    /// lets it get copies and viewers again.
    Drain(ClusterDrainArgs),
    /// Start nodes anew one after the other, as for a new version.
    ///
    /// Runs a command for each registered node, by name, or for those that are named in the order
    /// given. Waits each time until the node is registered anew with all its copies, but for those
    /// that placement removes meanwhile. Viewers go on if the command replaces the program in its
    /// place (SIGUSR2). The first node whose command fails, or that does not come back, ends it:
    /// the others are left as they are.
    Upgrade(ClusterUpgradeArgs),
    /// Forget a node that is gone for good.
    ///
    /// Removes what etcd knows of a node that is away: that it belongs to the cluster, the titles
    /// that it had, its orders, and that it is drained. Its copies are replaced at once. Titles
    /// that neither another node nor the bucket is known to have are named, and the command is
    /// refused, unless --destroy says that they are lost. Nothing is removed from disks: a node
    /// that comes back registers again with all of its titles.
    Forget(ClusterForgetArgs),
}

/// Arguments of `tenuto cluster nodes`.
#[derive(clap::Args)]
pub(crate) struct ClusterNodesArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto cluster drain`.
#[derive(clap::Args)]
pub(crate) struct ClusterDrainArgs {
    /// The node.
    #[arg(value_parser = node_name)]
    pub(crate) node: NodeId,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Let the node get copies and viewers again.
    #[arg(long)]
    pub(crate) undo: bool,
    /// Return at once.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto cluster upgrade`.
#[derive(clap::Args)]
pub(crate) struct ClusterUpgradeArgs {
    /// The nodes, in this order; without them all that are registered.
    #[arg(value_parser = node_name)]
    pub(crate) nodes: Vec<NodeId>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// What starts a node anew.
    ///
    /// A command for sh, such as 'ssh $TENUTO_NODE_HOST systemctl kill -s USR2 --kill-whom main
    /// tenuto'. Its environment has the node's name (TENUTO_NODE), address (TENUTO_NODE_ADDRESS)
    /// and the host in that (TENUTO_NODE_HOST). What it prints goes to standard error.
    #[arg(long, required = true, value_name = "COMMAND")]
    pub(crate) run: String,
    /// Time in which a node must be back.
    #[arg(long, default_value = "5min", value_parser = some_time)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto cluster forget`.
#[derive(clap::Args)]
pub(crate) struct ClusterForgetArgs {
    /// The node, which is away.
    #[arg(value_parser = node_name, required_unless_present = "titles")]
    pub(crate) node: Option<NodeId>,
    /// Forget the titles that no node has, instead of a node.
    ///
    /// Neither a registered node nor one that is away has them, and the bucket is not known to,
    /// such as those of a disk that was lost.
    #[arg(long)]
    pub(crate) titles: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Forget titles also where nobody is known to have them any more.
    #[arg(long)]
    pub(crate) destroy: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto director`.
#[derive(clap::Args)]
pub(crate) struct DirectorArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The secret that the nodes and directors of the cluster share.
    ///
    /// A file with 32 bytes or more, which other users must not be able to read: `openssl rand -hex
    /// 32` makes one. A node believes the viewer's address in a question that is signed with it.
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) cluster_secret: PathBuf,
    /// Where viewers connect.
    ///
    /// 0.0.0.0:8090 accepts connections from the network; port 0 takes any free port. An address
    /// that is neither loopback nor private nor link-local needs --tls-certificate and --tokens, or
    /// --insecure.
    #[arg(long, default_value = "127.0.0.1:8090", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Where RTSP players connect.
    ///
    /// Titles are then also at rtsp://ADDRESS/t/TITLE, from where players are sent to a node that
    /// has --rtsp. A public address needs --tls-certificate, or --insecure. Without it there is no
    /// RTSP.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) rtsp: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,
    /// Listen on a public address without TLS or without tokens.
    ///
    /// For a director that a firewall, a container or a proxy keeps strangers away from.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Show nodes and numbers only to holders of an operator's token.
    ///
    /// The key file that the nodes have as --tokens: /status and /metrics need a token of `tenuto
    /// token KEYS --operator`, /titles one that opens all titles. The file is read again when it
    /// changes. Without it everybody who can connect sees them. A viewer needs a token that opens
    /// the title, which the nodes check, too.
    #[arg(long, value_name = "KEYS")]
    pub(crate) tokens: Option<PathBuf>,
    /// Leave as much free as the viewers of any one node need.
    ///
    /// A new viewer is then refused where there would not be enough if that node were lost.
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "node",
        value_parser = words(HEADROOM)
    )]
    pub(crate) survive_loss: Option<Headroom>,
    /// Part of each disk and network for viewers who lose their node.
    ///
    /// New viewers get the rest. Without it a viewer may find the other nodes with the title full.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = whole::<u8>(0, 90))]
    pub(crate) keep_free: u8,
    #[command(flatten)]
    pub(crate) bucket: RecordBucketArgs,
    /// Copies that each title has at least, on different nodes.
    #[arg(long, default_value = "2", value_parser = whole::<u32>(1, 16))]
    pub(crate) copies: u32,
    /// Further copies of popular titles, in percent of --copies of all titles.
    ///
    /// A title whose viewers take more than half of a disk for each copy gets more in any case;
    /// what is left of this goes to the most popular ones of the others.
    #[arg(long, value_name = "PERCENT", default_value = "12", value_parser = whole::<u8>(0, 200))]
    pub(crate) extra_copies: u8,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// What new viewers leave free, by name.
const HEADROOM: [(&str, &str, Headroom); 2] = [
    (
        "node",
        "the free rate of all disks is enough for the streams of the largest node; without WHAT, too",
        Headroom::Node,
    ),
    (
        "title",
        "the viewers of each title fit at the other nodes with that title. A title on one node has no \
         viewers",
        Headroom::Title,
    ),
];

/// Parses the name of a cluster.
pub(crate) fn cluster_name(text: &str) -> Result<ClusterName, BadName> {
    ClusterName::new(text)
}
