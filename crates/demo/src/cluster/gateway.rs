//! The bucket of the cluster: a server of the S3 protocol (`versitygw`) with all titles, which is
//! lost while a node copies those that it lacks.

use super::ClusterDemo;
use super::parts::{TITLES, wait};
use crate::children::{Call, Problem, Running};
use std::net::TcpStream;
use std::path::PathBuf;

/// Copies from the bucket that a node writes.
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

    /// Lets a node copy all titles that it lacks.
    pub(super) fn copy(&self) -> Result<Copying, Problem> {
        let call = self.of_bucket("fill").arg(self.store(NODE));
        let log = self.log("fill");
        Ok(Copying { running: call.start(&log)?, call, log })
    }

    /// Copies what a lost server has left to copy, and removes all copies again.
    pub(super) fn copy_again(&self) -> Result<(), Problem> {
        self.copy()?.wait(self)??;
        for title in TITLES.iter().filter(|title| !title.nodes.contains(&NODE)) {
            let remove = self.call("rm").arg(self.store(NODE)).arg(title.name);
            remove.output(&self.log("rm"), &self.stop)?;
        }
        println!("n{NODE} has copied from the bucket what it lacked");
        Ok(())
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

/// The node that copies.
pub(super) const NODE: usize = 1;

const PROGRAM: &str = "versitygw";
const ADDRESS: &str = "127.0.0.41:7070";
const BUCKET: &str = "films";
const KEY: &str = "key";
const SECRET: &str = "a-secret-key";
