//! The agent as a command: its arguments, and what it does. The program `tenuto-agent` is this
//! command and nothing else; `tenuto meter agent` is the same command in the whole program.
//!
//! ```text
//!   AgentArgs ── run ──┬─▶ agent    waits for a controller, starts workers
//!                      └─▶ worker   --worker: runs its part of the streams or clients
//! ```
//!
//! An agent starts its own program once more for each worker, with the words that its caller gives.
//! How is measured, is in `meter`.

mod terminal;

use meter::MeterError;
use meter::agents::{AgentConfig, read_token, run_worker, serve_agent, serve_agent_stdio};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use terminal::{complain, hangup_is_ignored, stop_on_interrupts, stop_on_signals};

/// Arguments of an agent.
#[derive(clap::Args)]
pub struct AgentArgs {
    /// Directories that the agent may use.
    #[arg(required_unless_present = "worker", value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Where controllers connect.
    ///
    /// 0.0.0.0:7070 accepts connections from the network; port 0 takes any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", value_parser = address)]
    pub listen: SocketAddr,
    /// A file with the token that controllers must have, too.
    ///
    /// 16 bytes or more: openssl rand -hex 32 > secret; chmod 600 secret
    #[arg(long, value_name = "PATH")]
    pub token_file: Option<PathBuf>,
    /// Use standard input and output; the token is the first line.
    ///
    /// Commands with --hosts start the agent so, through ssh.
    #[arg(long)]
    pub stdio: bool,
    /// Run as a worker of an agent; standard input has the task.
    #[arg(long, hide = true, exclusive = true)]
    pub worker: bool,
}

/// Parses an IP address with a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not an address such as 127.0.0.1:8080 or [::]:8080"))
}

/// Runs an agent until it is stopped, or a worker until its run is over. `words` are those of this
/// program's command line that stand before [`AgentArgs`].
pub fn run(args: &AgentArgs, words: &[&str]) -> Result<(), MeterError> {
    if args.worker {
        let observer = terminal::WorkerObserver::new()?;
        let worked = run_worker(&observer);
        observer.note_left_behind();
        return worked;
    }
    let program = std::env::current_exe()
        .map_err(|error| MeterError::new(format!("cannot find this program: {error}")))?;
    let words = words.iter().copied().chain(["--worker"]).map(OsString::from);
    let worker = std::iter::once(program.into_os_string()).chain(words).collect();
    let config = AgentConfig { allowed: args.dirs.clone(), worker };
    if args.stdio {
        return serve_agent_stdio(&config);
    }
    let token = read_token(args.token_file.as_deref())?;
    let listening = |address| terminal::print(&format!("agent on {address}"));
    serve_agent(&config, token, args.listen, &listening, terminal::note)
}
