//! The agent: waits for controllers, by TCP or on standard input and output (`meter agent`).

use crate::error::MeterError;
use crate::fleet::{Agent, CONTROLLER_SILENCE, Token};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections at once. One is served; the others wait, or are not authenticated.
const MAX_CONNECTIONS: usize = 16;

/// An agent that measures for controllers.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Directories in which controllers may measure.
    pub allowed: Vec<PathBuf>,
    /// The program that is started for each worker.
    pub program: PathBuf,
}

/// Serves one controller on standard input and output; its first line is the token.
pub fn serve_agent_stdio(config: &AgentConfig) -> Result<(), MeterError> {
    let agent = Agent::new(first_line()?, &config.allowed, config.program.clone())?;
    agent.serve(io::stdin(), io::stdout()).map_err(|error| MeterError::of(&error))
}

/// Serves controllers by TCP until the process ends. `listening` is called once with the bound
/// address.
pub fn serve_agent(
    config: &AgentConfig,
    token: Token,
    listen: SocketAddr,
    listening: &dyn Fn(SocketAddr),
    note: fn(&str),
) -> Result<(), MeterError> {
    let agent = Arc::new(Agent::new(token, &config.allowed, config.program.clone())?);
    let cannot = |error: io::Error| {
        MeterError::new(format!("cannot listen on {listen}: {error}"))
            .hint("choose another --listen")
    };
    let listener = TcpListener::bind(listen).map_err(cannot)?;
    listening(listener.local_addr().map_err(cannot)?);
    let connected = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        // A failed accept concerns one connection, not the agent.
        let Ok(stream) = stream else { continue };
        // Strangers must not fill the machine with threads.
        if connected.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            connected.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (agent, connected) = (Arc::clone(&agent), Arc::clone(&connected));
        std::thread::spawn(move || {
            let from = stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string());
            if let Err(error) = serve(&agent, stream) {
                note(&format!("{from}: {error}"));
            }
            connected.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

fn serve(agent: &Agent, stream: TcpStream) -> Result<(), Box<dyn std::error::Error>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CONTROLLER_SILENCE))?;
    stream.set_write_timeout(Some(CONTROLLER_SILENCE))?;
    Ok(agent.serve(stream.try_clone()?, stream)?)
}

/// Reads a token file.
pub fn read_token(path: &Path) -> Result<Token, MeterError> {
    let text = std::fs::read(path).map_err(|error| MeterError::cannot("read", path, &error))?;
    let named = |error| MeterError::of(&format!("{}: {error}", path.display()));
    Token::new(&text).map_err(named)
}

/// Reads the token on the first line of standard input byte by byte: the rest is for the agent.
fn first_line() -> Result<Token, MeterError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < 4096 && io::stdin().lock().read(&mut byte).is_ok_and(|read| read == 1) {
        if byte[0] == b'\n' {
            break;
        }
        line.push(byte[0]);
    }
    Ok(Token::new(&line)?)
}
