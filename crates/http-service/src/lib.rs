//! HTTP services of a few resources, such as those of a director and of a meter, and what every
//! server of HTTP needs: a certificate that may change while it runs, and the words of statuses.
//!
//! ```text
//!   accept ──too many──▶ 503, closed
//!      └──▶ thread:  TLS, head and body ──▶ HttpRequest ──▶ closure ──▶ HttpResponse ──▶ next
//!                        │ 10 s without a byte, or for one request: closed
//! ```
//!
//! One thread for each connection: such services have few clients or short responses, and a closure
//! may wait for another machine. Media are not sent so: `server` has a loop of its own.
//!
//! Connections that speak something else ([`ConnectionService`]) have the same bounds.

#![warn(missing_docs)]

mod accepting;
mod cache_path;
mod certificate;
mod connection;
mod console;
mod file_version;
mod request;
mod response;
mod secret_file;
mod service;

pub use accepting::{AcceptSetup, ConnectionHandler, ConnectionService, OpenConnections};
pub use cache_path::{CachePath, is_name_for_caches};
pub use certificate::{CertificateEvent, CertificateFiles, ServerCertificate, TlsFiles};
pub use connection::Connection;
pub use console::console_file;
pub use file_version::FileVersion;
pub use request::HttpRequest;
pub use response::{HttpResponse, status_words};
pub use secret_file::is_exposed;
pub use service::{HttpService, ServiceSetup};
