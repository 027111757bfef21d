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
use http_service::{HttpRequest, HttpService, OpenConnections, ServiceSetup, TlsFiles};
use measuring::Measuring;
use reports::KeptReports;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What a console needs.
pub struct ConsoleConfig {
    /// The directory of the reports.
    pub directory: PathBuf,
    /// Directories in which may be measured.
    pub allowed: Vec<PathBuf>,
    /// Where browsers connect; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The certificate with which the console answers; `None`: it speaks HTTP in the clear.
    pub tls: Option<TlsFiles>,
    /// The token that a browser must have; needed where other machines can connect.
    pub token: Option<Token>,
    /// The command line before a command of the meter: the program first.
    pub meter: Vec<OsString>,
}

/// A console that runs. Dropped, it stops, with the measurement that runs.
pub struct MeterConsole {
    /// `None` from the moment at which the console stops.
    http: Option<HttpService>,
    address: SocketAddr,
    state: Arc<ConsoleState>,
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
    /// Starts a console. `say` takes what an operator should know of the certificate.
    ///
    /// # Errors
    /// An address where others could measure without a token, or that cannot be listened at; a
    /// directory or a certificate that cannot be used.
    pub fn start(
        config: ConsoleConfig,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, MeterError> {
        let ConsoleConfig { directory, allowed, listen, tls, token, meter } = config;
        access::check_address(listen, token.is_some())
            .map_err(|why| MeterError::from(why).into_usage())?;
        let tls = tls.map(|files| files.http_config(say)).transpose()?;
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
        let state = Arc::new(state);
        let of_requests = Arc::clone(&state);
        let setup = ServiceSetup {
            thread: "console",
            open: Arc::new(OpenConnections::new(MOST_CONNECTIONS, MOST_CONNECTIONS)),
            largest_body: LARGEST_BODY,
            fields_of_all: "",
            tls,
        };
        let answer = move |request: &HttpRequest<'_>| routes::answer(&of_requests, request);
        let http = HttpService::start(listener, setup, answer).map_err(cannot)?;
        Ok(Self { address: http.address(), http: Some(http), state })
    }

    /// Where browsers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MeterConsole {
    fn drop(&mut self) {
        self.http = None;
        // Threads of requests may have the state for seconds, the measurement ends now.
        self.state.measuring.end();
    }
}

/// Connections at a time: a browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// Bytes of an order.
const LARGEST_BODY: usize = 64 << 10;
