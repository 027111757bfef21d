//! `meter agent`: waits for controllers, by TCP or on standard input and output.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out;
use meter::fleet::{Agent, CONTROLLER_SILENCE, NotAllowed, Token, TokenError};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections at once, of whom all but one wait or are strangers.
const MOST: usize = 16;

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let allowed: Vec<PathBuf> = args.all("DIR");
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    if args.has("stdio") {
        let agent = Agent::new(first_line()?, &allowed, program)?;
        return agent
            .serve(io::stdin(), io::stdout())
            .map_err(|error| Failure::of(&error.to_string()));
    }
    let token = token(args)?;
    let agent = Arc::new(Agent::new(token, &allowed, program)?);
    let address: SocketAddr = args.get("listen");
    let cannot = |error: io::Error| {
        Failure::new(format!("cannot listen on {address}: {error}")).hint("choose another --listen")
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    out::print(&format!("agent on {address}\n"));
    let connected = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if connected.fetch_add(1, Ordering::Relaxed) >= MOST {
            connected.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (agent, connected) = (Arc::clone(&agent), Arc::clone(&connected));
        std::thread::spawn(move || {
            let from = stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string());
            if let Err(error) = serve(&agent, stream) {
                out::note(&format!("{from}: {error}"));
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

/// That of `--token-file`.
pub(super) fn token(args: &Args<'_>) -> Result<Token, Failure> {
    let Some(path) = args.maybe::<PathBuf>("token-file") else {
        return Err(Failure::usage("--token-file is missing")
            .hint("openssl rand -hex 32 > secret; chmod 600 secret"));
    };
    read(&path)
}

fn read(path: &Path) -> Result<Token, Failure> {
    let text = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    Token::new(&text).map_err(|error| Failure::of(&format!("{}: {error}", path.display())))
}

/// Byte by byte: what follows is not for here.
fn first_line() -> Result<Token, Failure> {
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

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::of(&error.to_string())
    }
}

impl From<NotAllowed> for Failure {
    fn from(error: NotAllowed) -> Self {
        Self::of(&error.to_string())
    }
}
