//! The trace of one session: its span, which is told when it ends, and the spans of its steps.

use super::context::{SpanId, TraceContext};
use super::otlp::SpanRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::SystemTime;

/// How a session's player fetches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Protocol {
    Hls,
    HlsTransport,
    Dash,
    /// DASH of files with an index.
    OnDemand,
    /// One MP4 file.
    File,
    /// One file with a transport stream.
    TransportFile,
    /// HLS or DASH of a player that has begun at another node.
    Segments,
    Rtsp,
    /// A transport stream to an address of the operator's.
    Channel,
    /// A file of a mount.
    Mount,
    /// A cache that fetches what it has not.
    Cache,
    /// Another node that fetches a copy.
    Node,
}

impl Protocol {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Hls => "hls",
            Self::HlsTransport => "hls-ts",
            Self::Dash => "dash",
            Self::OnDemand => "dash-files",
            Self::File => "mp4",
            Self::TransportFile => "ts",
            Self::Segments => "segments",
            Self::Rtsp => "rtsp",
            Self::Channel => "channel",
            Self::Mount => "mount",
            Self::Cache => "cache",
            Self::Node => "node",
        }
    }
}

/// What is known of a session's span from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionTrace {
    pub(super) context: TraceContext,
    /// The span of the player or the proxy that asked.
    pub(super) parent: Option<SpanId>,
    pub(super) asked: SystemTime,
    pub(super) protocol: Protocol,
}

impl SessionTrace {
    /// The session's span, for what is told of it elsewhere.
    pub(crate) fn context(&self) -> TraceContext {
        self.context
    }

    /// When its player asked for it.
    pub(crate) fn asked(&self) -> SystemTime {
        self.asked
    }

    /// The span of the session, which is over.
    pub(super) fn whole(
        &self,
        name: &'static str,
        error: Option<String>,
        mut attributes: Vec<(&'static str, Value)>,
    ) -> SpanRecord {
        attributes.push(("tenuto.protocol", self.protocol.word().into()));
        SpanRecord {
            name,
            context: self.context,
            parent: self.parent,
            is_session: true,
            begun: self.asked,
            ended: SystemTime::now(),
            attributes,
            error,
        }
    }

    /// The span of a step of the session, which is over. `id`: random bytes.
    pub(super) fn step(
        &self,
        id: [u8; 8],
        name: &'static str,
        begun: SystemTime,
        error: Option<String>,
        attributes: Vec<(&'static str, Value)>,
    ) -> SpanRecord {
        SpanRecord {
            name,
            context: TraceContext { span: SpanId::of(id), ..self.context },
            parent: Some(self.context.span),
            is_session: false,
            begun,
            ended: SystemTime::now(),
            attributes,
            error,
        }
    }
}
