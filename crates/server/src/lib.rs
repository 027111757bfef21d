//! The media server: HTTP, RTSP, sessions, control socket and metrics around a pure engine.
//!
//! The crate `engine` decides (which read, for which stream, when; which session is admitted) and
//! does no I/O. This crate owns sockets, threads, the clock and the devices, and executes the
//! engine's actions. It never looks into a title's payload.

pub mod access;
mod address_prefix;
mod admin;
mod auth_request;
mod background_io;
mod buffer_memory;
mod calibration;
mod client_thread;
mod clients;
mod clock;
mod config;
pub mod control;
mod copies;
mod copy_board;
mod copy_source;
mod core;
mod daily_window;
mod damage;
mod disk_history_writer;
mod disk_thread;
mod exposure;
mod growing;
mod handover;
mod http;
mod http2;
mod layout;
mod library;
mod log;
mod membership;
mod messages;
mod metrics;
mod missed_changes;
mod missing_stores;
mod mount_log;
mod mount_reads;
mod node_records;
mod opener;
mod opening;
mod outgoing;
pub mod plan;
mod playback_params;
mod player_reports;
mod presentation;
mod read_size;
mod recalibration;
mod recovery_probe;
mod reload;
mod restart;
mod rtsp;
mod run_delay;
mod running_writes;
mod scrubbing;
mod server;
mod sessions;
mod shared;
mod signature;
mod store_search;
mod telemetry;
mod telling_damage;
mod title_keys;
mod title_owner;
mod tls;
mod watched_device;
mod webhook;
pub mod wire;

pub use address_prefix::{AddressPrefix, BadPrefix};
pub use admin::document as openapi;
pub use config::{
    AuthRequestTarget, ClusterConfig, MAX_HTTP_THREADS, ServerConfig, Unanswered, WebhookTarget,
};
pub use copy_source::CopySource;
pub use daily_window::{BadWindow, DailyWindow};
pub use exposure::check_director;
pub use handover::{HANDOVER_VERSION, Handover};
pub use http_service::TlsFiles;
pub use mount_log::MountLog;
pub use reload::{ConfigOption, OptionChange, config_options};
pub use server::Server;
pub use telemetry::{OtlpHeaders, OtlpTarget, TracedPart};
