//! The meter's own web console: starts a run or a capacity search, shows it live, and keeps,
//! compares and removes reports.
//!
//! ```text
//!   browser ─▶ http ─▶ access ─▶ routes ─┬─▶ measuring ─▶ tenuto meter run, capacity
//!                                        ├─▶ reports   ─▶ DIR/NAME/report.html, summary.json
//!                                        └─▶ web_console   the page
//! ```
//!
//! It is no part of a server of titles, which must not be told to load other storage. One
//! measurement runs at a time, because two would measure each other.

mod access;
mod http;
mod measuring;
mod order;
mod reports;
mod routes;

use crate::allowed::AllowedDirectories;
use crate::error::MeterError;
use crate::fleet::Token;
use measuring::Measuring;
use reports::KeptReports;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a console needs.
pub struct ConsoleConfig {
    /// The directory of the reports.
    pub directory: PathBuf,
    /// Directories in which may be measured.
    pub allowed: Vec<PathBuf>,
    /// Where browsers connect; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The token that a browser must have; needed where other machines can connect.
    pub token: Option<Token>,
    /// The command line before a command of the meter: the program first.
    pub meter: Vec<OsString>,
}

/// A console that runs. Dropped, it stops, with the measurement that runs.
pub struct MeterConsole {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// What the threads of a console share.
struct ConsoleState {
    reports: KeptReports,
    allowed: AllowedDirectories,
    token: Option<Token>,
    meter: Vec<OsString>,
    measuring: Measuring,
    /// Held while two reports are compared, which takes a processor.
    comparing: Mutex<()>,
}

impl MeterConsole {
    /// Starts a console.
    ///
    /// # Errors
    /// An address where others could measure without a token, or that cannot be listened at; a
    /// directory that cannot be used.
    pub fn start(config: ConsoleConfig) -> Result<Self, MeterError> {
        let ConsoleConfig { directory, allowed, listen, token, meter } = config;
        access::check_address(listen, token.is_some())
            .map_err(|why| MeterError::from(why).into_usage())?;
        let state = ConsoleState {
            reports: KeptReports::open(&directory)?,
            allowed: AllowedDirectories::new(&allowed)?,
            token,
            meter,
            measuring: Measuring::default(),
            comparing: Mutex::default(),
        };
        let cannot = |error: std::io::Error| {
            MeterError::new(format!("cannot listen on {listen}: {error}"))
                .hint("choose another --listen")
        };
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let state = Arc::new(state);
        let work = move || {
            let of_requests = Arc::clone(&state);
            http::serve(&listener, &until, move |request| routes::answer(&of_requests, request));
            // Threads of requests may have the state for seconds, the measurement ends now.
            state.measuring.end();
        };
        let accepting = std::thread::Builder::new().name("accept".to_owned()).spawn(work);
        Ok(Self { address, over, accepting: Some(accepting.map_err(cannot)?) })
    }

    /// Where browsers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MeterConsole {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let ip: IpAddr = match self.address {
            SocketAddr::V4(_) if self.address.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) if self.address.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            address => address.ip(),
        };
        // The connection ends the wait of the thread that accepts.
        let here = SocketAddr::new(ip, self.address.port());
        if TcpStream::connect_timeout(&here, TO_WAKE).is_ok() {
            let _ = self.accepting.take().map(JoinHandle::join);
        }
    }
}

/// Time for a connection to this process.
const TO_WAKE: Duration = Duration::from_secs(2);
