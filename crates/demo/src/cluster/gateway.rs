//! The bucket of the cluster: a server of the S3 protocol (`versitygw`) with all titles, from which
//! nodes are filled as the directors order. It is lost while they copy titles that are new.

use super::network::GATEWAY;
use super::parts::{TITLES, wait};
use super::{ClusterDemo, Film};
use crate::children::{Call, Problem, Running};
use std::net::TcpStream;
use std::path::PathBuf;

impl ClusterDemo {
    /// Whether the server of the bucket is installed.
    pub(super) fn has_gateway(&self) -> bool {
        Call::new(PROGRAM).arg("--version").output(&self.log("gateway"), &self.stop).is_ok()
    }

    /// Starts the server; its objects stay from one start to the next.
    pub(super) fn start_gateway(&self) -> Result<Running, Problem> {
        let bucket = self.bucket().join(BUCKET);
        std::fs::create_dir_all(&bucket)
            .map_err(|error| format!("cannot make {}: {error}", bucket.display()))?;
        let address = address(self);
        let call = Call::new(PROGRAM).args(["--port", &address, "--quiet", "posix"]);
        let call = call.arg(self.bucket()).env("ROOT_ACCESS_KEY", KEY);
        let running = call.env("ROOT_SECRET_KEY", SECRET).start(&self.log("gateway"))?;
        wait(self, "the server of the bucket answers", || TcpStream::connect(&address).is_ok())?;
        Ok(running)
    }

    /// Makes the store that all titles are pushed from, and removes what an earlier run has left in
    /// the bucket.
    pub(super) fn make_studio(&self) -> Result<(), Problem> {
        let _ = std::fs::remove_dir_all(self.bucket());
        self.format(self.studio(), STUDIO_SIZE)?;
        TITLES.iter().try_for_each(|title| self.ingest(self.studio(), Film::Short, title.name))?;
        NEW_TITLES.iter().try_for_each(|title| self.ingest(self.studio(), Film::Long, title))
    }

    /// Puts titles into the bucket.
    pub(super) fn push<'a>(
        &self,
        titles: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Problem> {
        let call = self.call("bucket").args(["push", &format!("s3://{BUCKET}")]);
        let call = call.arg(self.studio()).args(titles);
        let call = with_keys(call.args(["--endpoint", &format!("http://{}", address(self))]));
        call.output(&self.log("push"), &self.stop).map(drop)
    }

    fn bucket(&self) -> PathBuf {
        self.folder.join("bucket")
    }

    fn studio(&self) -> PathBuf {
        self.folder.join("studio.store")
    }
}

/// A node or a director with the bucket.
pub(super) fn with_bucket(demo: &ClusterDemo, call: Call) -> Call {
    let (bucket, endpoint) = (format!("s3://{BUCKET}"), format!("http://{}", address(demo)));
    with_keys(call.args(["--bucket", &bucket, "--bucket-endpoint", &endpoint]))
}

/// Where the server of the bucket listens.
fn address(demo: &ClusterDemo) -> String {
    format!("{}:7070", demo.network.address(GATEWAY))
}

fn with_keys(call: Call) -> Call {
    call.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET)
}

/// Titles that appear in the bucket while the cluster runs.
pub(super) const NEW_TITLES: [&str; 2] = ["f", "g"];

/// All titles.
const STUDIO_SIZE: &str = "512MiB";

const PROGRAM: &str = "versitygw";
const BUCKET: &str = "films";
const KEY: &str = "key";
const SECRET: &str = "a-secret-key";
