//! Arguments of `director`.

use super::shared::ReportArgs;
use cluster::{BadName, ClusterName};
use director::etcd::EtcdAddress;
use std::net::SocketAddr;
use std::path::PathBuf;
use tenuto_agent::address;

/// Arguments of `tenuto director`.
#[derive(clap::Args)]
pub(crate) struct DirectorArgs {
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
    /// The secret that the nodes and directors of the cluster share.
    ///
    /// A file with 32 bytes or more, which other users must not be able to read: `openssl rand -hex
    /// 32` makes one. A node believes the viewer's address in a question that is signed with it.
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) cluster_secret: PathBuf,
    /// Where viewers connect.
    ///
    /// 0.0.0.0:8090 accepts connections from the network; port 0 takes any free port. A director
    /// does not encrypt: for strangers put a proxy with TLS in front.
    #[arg(long, default_value = "127.0.0.1:8090", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Leave as much free as the viewers of any one node need.
    ///
    /// A new viewer is then refused where the free rate of all disks would not be enough for the
    /// streams of the largest node, if that were lost.
    #[arg(long)]
    pub(crate) survive_loss: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Parses the name of a cluster.
pub(crate) fn cluster_name(text: &str) -> Result<ClusterName, BadName> {
    ClusterName::new(text)
}
