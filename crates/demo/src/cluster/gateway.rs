//! The bucket of the cluster: a server of the S3 protocol (`versitygw`) with all titles, which is
//! lost while a node copies one of them.

use super::ClusterDemo;
use super::parts::wait;
use crate::children::{Call, Problem, Running};
use std::net::TcpStream;
use std::path::PathBuf;

/// A copy from the bucket that a node writes.
pub(super) struct Copying {
    call: Call,
    running: Running,
    log: PathBuf,
}

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
        let call = Call::new(PROGRAM).args(["--port", ADDRESS, "--quiet", "posix"]);
        let call = call.arg(self.bucket()).env("ROOT_ACCESS_KEY", KEY);
        let running = call.env("ROOT_SECRET_KEY", SECRET).start(&self.log("gateway"))?;
        wait(self, "the server of the bucket answers", || TcpStream::connect(ADDRESS).is_ok())?;
        Ok(running)
    }

    /// Removes what an earlier run has left in the bucket.
    pub(super) fn empty_bucket(&self) {
        let _ = std::fs::remove_dir_all(self.bucket());
    }

    /// Puts all titles of a store into the bucket that are not there.
    pub(super) fn push(&self, number: usize) -> Result<(), Problem> {
        let call = self.of_bucket("push").arg(self.store(number));
        call.output(&self.log("push"), &self.stop).map(drop)
    }

    /// Lets a node copy a title from the bucket.
    pub(super) fn copy(&self) -> Result<Copying, Problem> {
        let call = self.of_bucket("fill").arg(self.store(NODE)).arg(TITLE);
        let log = self.log("fill");
        Ok(Copying { running: call.start(&log)?, call, log })
    }

    /// Copies the title of which the copy was cut off, and removes it again.
    pub(super) fn copy_again(&self) -> Result<(), Problem> {
        let copied = self.copy()?.wait(self)?;
        let remove = self.call("rm").arg(self.store(NODE)).arg(TITLE);
        remove.output(&self.log("rm"), &self.stop)?;
        copied.map(|()| println!("n{NODE} has copied '{TITLE}' from the bucket"))
    }

    /// A command on the bucket.
    fn of_bucket(&self, command: &str) -> Call {
        let call = self.call("bucket").args([command, &format!("s3://{BUCKET}")]);
        let call = call.args(["--endpoint", &format!("http://{ADDRESS}")]);
        call.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET)
    }

    fn bucket(&self) -> PathBuf {
        self.folder.join("bucket")
    }
}

impl Copying {
    /// Waits for its end; the inner error is that of a copy that was not complete.
    pub(super) fn wait(mut self, demo: &ClusterDemo) -> Result<Result<(), Problem>, Problem> {
        let code = self.running.wait(&demo.stop)?;
        Ok(if code == Some(0) { Ok(()) } else { Err(self.call.failure(code, &self.log)) })
    }
}

/// The node that copies, and what: it has no copy of this title.
pub(super) const NODE: usize = 1;
pub(super) const TITLE: &str = "c";

const PROGRAM: &str = "versitygw";
const ADDRESS: &str = "127.0.0.41:7070";
const BUCKET: &str = "films";
const KEY: &str = "key";
const SECRET: &str = "a-secret-key";
