//! A node is drained as an operator does it: with the command `tenuto cluster drain`, while viewers
//! play. When they have left, it is stopped, and ends by itself.
//!
//! ```text
//!   tenuto cluster drain nK ──▶ copies elsewhere ─▶ none here ─┐
//!       viewers of RTSP go, those of HLS as they ask ─▶ none ──┴▶ SIGTERM ─▶ end
//! ```

use super::parts::{Parts, members, viewers};
use super::{ClusterDemo, LOOK};
use crate::children::{Call, Problem, check};
use crate::server::Server;
use std::time::{Duration, Instant};

impl Parts {
    /// Drains the node with the most viewers, and stops it; returns how it went.
    pub(super) fn drain(&mut self, demo: &ClusterDemo) -> Result<String, Problem> {
        let nodes = (1..).zip(&mut self.nodes).filter(|(_, node)| node.is_some());
        let most = nodes.max_by_key(|(_, node)| node.as_ref().map_or(0, viewers));
        let (number, node) = most.ok_or("no node runs")?;
        let node = node.take().ok_or("it does not run")?;
        self.drained = Some(number);
        let before = viewers(&node);
        let call = drain_call(demo, number);
        println!("$ {}", call.typed());
        let begun = Instant::now();
        let (left, copies) = std::thread::scope(|scope| {
            let drained = scope.spawn(|| {
                let done = call.output(&demo.log("drain"), &demo.stop);
                done.map(|_| begun.elapsed().as_secs())
            });
            let left = until_left(demo, &node)?;
            let copies = drained.join().map_err(|_| "a thread panicked".to_owned())??;
            Ok::<_, Problem>((left, copies))
        })?;
        let remained = viewers(&node);
        self.is_gone(&node);
        let stopped = Instant::now();
        drop(node);
        let took = stopped.elapsed().as_secs_f64();
        let left = match left {
            Some(time) => format!("its {before} viewers had left after {} s", time.as_secs()),
            None => format!("{remained} of its {before} viewers had not left"),
        };
        Ok(format!(
            "n{number} drained: {left}, its copies after {copies} s; SIGTERM, and ended after \
             {took:.1} s"
        ))
    }

    /// Lets the node that was drained get copies and viewers again.
    pub(super) fn undo_drain(&mut self, demo: &ClusterDemo) -> Result<(), Problem> {
        let Some(number) = self.drained.take() else { return Ok(()) };
        drain_call(demo, number).arg("--undo").output(&demo.log("drain"), &demo.stop).map(drop)
    }
}

fn drain_call(demo: &ClusterDemo, number: usize) -> Call {
    let call = demo.call("cluster").args(["drain", &format!("n{number}")]);
    call.args(["--cluster", &members(demo), "--cluster-name", "demo"])
}

/// The time until a node has no viewers; `None`: it has some for too long.
fn until_left(demo: &ClusterDemo, node: &Server) -> Result<Option<Duration>, Problem> {
    let begun = Instant::now();
    while viewers(node) > 0 {
        check(&demo.stop)?;
        if begun.elapsed() > TO_LEAVE {
            return Ok(None);
        }
        std::thread::sleep(LOOK * 10);
    }
    Ok(Some(begun.elapsed()))
}

/// Time for viewers to leave: they ask each half a minute where they should be, and have their turn
/// once a minute.
const TO_LEAVE: Duration = Duration::from_secs(110);
