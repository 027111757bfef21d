//! The table of operations: it routes requests, and the OpenAPI document is made from it.

use super::openapi::{SchemaOf, any_object, schema_of, within};
use super::problem::Problem;
use crate::control::Request;
use crate::http::{HttpRequest, Method};
use crate::plan::{LONGEST_WITHIN, MOST_EXPONENT, MOST_TITLES, RATES};
use crate::wire;
use media::TitleKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::Path;
use store::TitleSelection;

/// One operation of the API.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(super) method: Method,
    /// The address; a name in braces stands for one name of a path.
    pub(super) path: &'static str,
    /// The name of the operation for generated clients.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) action: ApiAction,
    pub(super) query: &'static [QueryParameter],
    pub(super) body: RequestBody,
    /// The status of its success.
    pub(super) status: u16,
    /// What it answers then; `None`: nothing.
    pub(super) response: Option<SchemaOf>,
    /// The statuses of its errors, beside those of every operation.
    pub(super) errors: &'static [u16],
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiAction {
    Document,
    Sessions,
    Session,
    EndSession,
    EndSessions,
    Send,
    Decisions,
    Events,
    Headroom,
    Planning,
    Plan,
    Disks,
    Disk,
    Calibrate,
    DrainReport,
    Drain,
    EndDrain,
    Recordings,
    EndRecording,
    Titles,
    Title,
    Demand,
    Rename,
    Remove,
    Upload,
    Download,
    Ingests,
    Ingest,
    CancelIngest,
    Reload,
    Restart,
    Stop,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestBody {
    /// There is none.
    None,
    /// A JSON object.
    Json(SchemaOf),
    /// A file, of any type.
    File,
}

/// A parameter of the query.
#[derive(Debug)]
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: SchemaOf,
    pub(super) is_required: bool,
}

/// The body of a rename.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// The new name, unique in its store.
    name: String,
}

/// The body of a calibration.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CalibrationTime {
    /// Seconds of the measurement's first part, 1 to 600; the long run takes 2.7 times as long.
    #[schemars(range(min = 1, max = 600))]
    seconds: f64,
}

/// The body of a request to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTime {
    /// Seconds after which the server ends at the latest, 1 to 86400. A further request may shorten
    /// the time.
    #[schemars(range(min = 1, max = 86_400))]
    seconds: f64,
}

/// The body of a request to send a title.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SentTitle {
    /// The title's name.
    pub(super) title: String,
    /// Where it goes: `udp://ADDRESS:PORT` for the transport stream alone, `rtp://ADDRESS:PORT` for
    /// the stream in RTP (RFC 2250). An IP address, of a receiver or of a multicast group.
    pub(super) to: String,
    /// Routers that datagrams to a multicast group of IPv4 may pass, and one; 1 unless said
    /// otherwise.
    #[schemars(range(min = 1, max = 255))]
    pub(super) ttl: Option<u8>,
    /// Constant rate in bits per second, up to which null packets fill the stream. Without it the
    /// stream has the rate of the title.
    #[schemars(range(min = 64_000, max = 150_000_000))]
    pub(super) rate: Option<u64>,
    /// Whether it begins again when it is over.
    #[serde(default, rename = "loop")]
    pub(super) repeats: bool,
}

/// The body of a request to ingest the file of an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadedTitle {
    /// The address of the file, over HTTP or HTTPS: below one of the server's `--ingest-from`.
    pub(super) url: String,
}

/// What `as` says of an uploaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UploadedAs {
    /// Media, which players can play.
    Media,
    /// Opaque bytes.
    File,
}

/// All operations. Those of one address follow each other.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/api/v1/openapi.json",
        id: "document",
        summary: "This document",
        action: ApiAction::Document,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(any_object),
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/sessions",
        id: "listSessions",
        summary: "List the sessions, the oldest first, or those that the tokens of one subject began",
        action: ApiAction::Sessions,
        query: SESSION_PARAMETERS,
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::SessionList>),
        errors: &[],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/sessions",
        id: "sendTitle",
        summary: "Send a title as an MPEG transport stream over UDP to one receiver or to a multicast \
                  group. It is a session, which ends with the title or is ended as any other",
        action: ApiAction::Send,
        query: &[],
        body: RequestBody::Json(schema_of::<SentTitle>),
        status: 201,
        response: Some(schema_of::<wire::StartedSession>),
        errors: &[400, 403, 404, 422],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/sessions",
        id: "endSessions",
        summary: "End all sessions that the tokens of one subject began; their players get 410 from then on",
        action: ApiAction::EndSessions,
        query: END_PARAMETERS,
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::EndedSessions>),
        errors: &[400],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/sessions/{session}",
        id: "getSession",
        summary: "Describe one session",
        action: ApiAction::Session,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::SessionReport>),
        errors: &[404],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/sessions/{session}",
        id: "endSession",
        summary: "End a session; its player gets 410 from then on",
        action: ApiAction::EndSession,
        query: &[],
        body: RequestBody::None,
        status: 204,
        response: None,
        errors: &[404],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/decisions",
        id: "listDecisions",
        summary: "List the latest decisions on viewers with their reasons, the newest first",
        action: ApiAction::Decisions,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::DecisionList>),
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/events",
        id: "watch",
        summary: "Watch the server, as server-sent events: `status` twice a second, with what `/status` \
                  has and only the slots since the event before; `decision` for each decision on a \
                  viewer. The response has no end",
        action: ApiAction::Events,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: None,
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/headroom",
        id: "getHeadroom",
        summary: "How many more viewers of a title would be admitted at this moment, in its best \
                  rendition, and why the next one would not",
        action: ApiAction::Headroom,
        query: HEADROOM_PARAMETERS,
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::HeadroomReport>),
        errors: &[404, 422],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/planning",
        id: "getPlanChoices",
        summary: "The disk models, admission policies and sizes of reads that a plan can be made for",
        action: ApiAction::Planning,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::PlanChoices>),
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/plan",
        id: "getPlan",
        summary: "How many streams disks would hold: the bounds, and what an admission policy admits. \
                  A question about any disk, which changes nothing in this server",
        action: ApiAction::Plan,
        query: PLAN_PARAMETERS,
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::PolicyPlan>),
        errors: &[400, 404, 409, 422],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks",
        id: "listDisks",
        summary: "List the disks, with their stores and calibrations",
        action: ApiAction::Disks,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::DiskList>),
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}",
        id: "getDisk",
        summary: "Describe one disk",
        action: ApiAction::Disk,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::ServedDisk>),
        errors: &[404],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/disks/{disk}/calibrate",
        id: "calibrateDisk",
        summary: "Measure a disk again, between the reads of sessions. A measurement during sessions \
                  is returned, and stored only where there is no other",
        action: ApiAction::Calibrate,
        query: &[],
        body: RequestBody::Json(schema_of::<CalibrationTime>),
        status: 200,
        response: Some(schema_of::<wire::Calibration>),
        errors: &[400, 404, 422],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}/drain",
        id: "getDrain",
        summary: "How far the drain of a disk is",
        action: ApiAction::DrainReport,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::DrainReport>),
        errors: &[404],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/disks/{disk}/drain",
        id: "drainDisk",
        summary: "Drain a disk: sessions leave it for copies on other disks as soon as they fit there, and new \
                  ones are read from it only where there is no other copy",
        action: ApiAction::Drain,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::DrainReport>),
        errors: &[404],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/disks/{disk}/drain",
        id: "endDrain",
        summary: "End the drain of a disk: it is used as before. Sessions that have left it stay where they are",
        action: ApiAction::EndDrain,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::DrainReport>),
        errors: &[404],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}/recordings",
        id: "listRecordings",
        summary: "List the recordings that run on a disk, those also that wait for their input",
        action: ApiAction::Recordings,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::RecordingList>),
        errors: &[404],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/disks/{disk}/recordings/{title}",
        id: "endRecording",
        summary: "End a recording, as Ctrl-C does for who has begun it: what had arrived becomes a \
                  title. Of a folder of parts by the folder's name, or by that of a part",
        action: ApiAction::EndRecording,
        query: &[],
        body: RequestBody::None,
        status: 204,
        response: None,
        errors: &[404],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}/titles",
        id: "listTitles",
        summary: "List the titles of a disk by name, all or page by page",
        action: ApiAction::Titles,
        query: LIST_PARAMETERS,
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::TitleList>),
        errors: &[400, 404],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}/titles/{title}",
        id: "getTitle",
        summary: "Describe one title with its tracks",
        action: ApiAction::Title,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::TitleDetail>),
        errors: &[404],
    },
    Operation {
        method: Method::Patch,
        path: "/api/v1/disks/{disk}/titles/{title}",
        id: "renameTitle",
        summary: "Rename a title",
        action: ApiAction::Rename,
        query: &[],
        body: RequestBody::Json(schema_of::<NewName>),
        status: 204,
        response: None,
        errors: &[400, 404, 409],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/disks/{disk}/titles/{title}",
        id: "removeTitle",
        summary: "Remove a title. Sessions that play it go on to their end, and its space is freed \
                  then",
        action: ApiAction::Remove,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::RemovedTitle>),
        errors: &[404],
    },
    Operation {
        method: Method::Put,
        path: "/api/v1/disks/{disk}/titles/{title}",
        id: "uploadTitle",
        summary: "Ingest the body of the request as a title of this name. The answer comes when the \
                  title is in the catalogue",
        action: ApiAction::Upload,
        query: UPLOAD_PARAMETERS,
        body: RequestBody::File,
        status: 201,
        response: Some(schema_of::<wire::UploadedTitle>),
        errors: &[400, 404, 409, 422, 507],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/disks/{disk}/titles/{title}",
        id: "downloadTitle",
        summary: "Download the file of an address, and ingest it as a title of this name. The answer \
                  comes when the title is in the catalogue. If the client has gone, the ingest goes on",
        action: ApiAction::Download,
        query: UPLOAD_PARAMETERS,
        body: RequestBody::Json(schema_of::<DownloadedTitle>),
        status: 201,
        response: Some(schema_of::<wire::UploadedTitle>),
        errors: &[400, 403, 404, 409, 422, 502, 507],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/disks/{disk}/titles/{title}/demand",
        id: "getDemand",
        summary: "The rate that a title needs over its time, in its best rendition, as admission counts it",
        action: ApiAction::Demand,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::RateOverTime>),
        errors: &[404, 422],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/ingests",
        id: "listIngests",
        summary: "List the uploads and downloads that are under way, with their progress, the oldest \
                  first",
        action: ApiAction::Ingests,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::RunningIngests>),
        errors: &[],
    },
    Operation {
        method: Method::Get,
        path: "/api/v1/ingests/{ingest}",
        id: "getIngest",
        summary: "Describe an upload or a download that is under way, or one of the latest 100 that \
                  have ended",
        action: ApiAction::Ingest,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::IngestDetail>),
        errors: &[404],
    },
    Operation {
        method: Method::Delete,
        path: "/api/v1/ingests/{ingest}",
        id: "cancelIngest",
        summary: "Cancel an upload or a download, or its ingest. Who has asked for it gets 409",
        action: ApiAction::CancelIngest,
        query: &[],
        body: RequestBody::None,
        status: 204,
        response: None,
        errors: &[404],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/reload",
        id: "reload",
        summary: "Read the configuration again, and use what may change of it. If it cannot be used, \
                  nothing changes",
        action: ApiAction::Reload,
        query: &[],
        body: RequestBody::None,
        status: 200,
        response: Some(schema_of::<wire::ReloadReport>),
        errors: &[422],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/restart",
        id: "restart",
        summary: "Start the program anew in the server's place, with the configuration as it is now. \
                  Sessions go on. If it cannot be used, or an ingest runs, nothing changes",
        action: ApiAction::Restart,
        query: &[],
        body: RequestBody::None,
        status: 204,
        response: None,
        errors: &[422],
    },
    Operation {
        method: Method::Post,
        path: "/api/v1/stop",
        id: "stop",
        summary: "Drain the server: it admits no new session, and ends when no session is active",
        action: ApiAction::Stop,
        query: &[],
        body: RequestBody::Json(schema_of::<StopTime>),
        status: 204,
        response: None,
        errors: &[],
    },
];

static HEADROOM_PARAMETERS: &[QueryParameter] = &[QueryParameter {
    name: "title",
    description: "The title's name",
    schema: schema_of::<String>,
    is_required: true,
}];

static PLAN_PARAMETERS: &[QueryParameter] = &[
    QueryParameter {
        name: "model",
        description: "The disk: name of a built-in model",
        schema: schema_of::<String>,
        is_required: false,
    },
    QueryParameter {
        name: "disk",
        description: "The disk: uuid of a disk of this server, as it was calibrated",
        schema: schema_of::<String>,
        is_required: false,
    },
    QueryParameter {
        name: "rate",
        description: "The streams: their constant rate in bits per second, 8000 to 1000000000000",
        schema: within::<{ RATES.start().0 }, { RATES.end().0 }>,
        is_required: false,
    },
    QueryParameter {
        name: "title",
        description: "The streams: viewers of this title in its best rendition",
        schema: schema_of::<String>,
        is_required: false,
    },
    QueryParameter {
        name: "disks",
        description: "Number of such disks, 1 to 10000; 1 unless said otherwise",
        schema: within::<{ *PLANNED_DISKS.start() }, { *PLANNED_DISKS.end() }>,
        is_required: false,
    },
    QueryParameter {
        name: "memory",
        description: "Bytes of buffers, of all disks together; unlimited unless said otherwise",
        schema: within::<{ *PLANNED_MEMORY.start() }, { *PLANNED_MEMORY.end() }>,
        is_required: false,
    },
    QueryParameter {
        name: "read_size",
        description: "Bytes of a read, a power of two from 4096 to 67108864; without it the best of all",
        schema: within::<{ *PLANNED_READS.start() }, { *PLANNED_READS.end() }>,
        is_required: false,
    },
    QueryParameter {
        name: "titles",
        description: "Number of titles that viewers choose among; without it each has its own",
        schema: within::<1, MOST_TITLES>,
        is_required: false,
    },
    QueryParameter {
        name: "zipf",
        description: "Exponent of Zipf's law by which they choose, 0 to 10; 0.8 unless said otherwise",
        schema: exponent,
        is_required: false,
    },
    QueryParameter {
        name: "within",
        description: "Seconds within which those who watch at the same time have come; 7200 unless \
                      said otherwise",
        schema: within::<1, LONGEST_WITHIN>,
        is_required: false,
    },
    QueryParameter {
        name: "policy",
        description: "The admission policy; `time-domain` unless said otherwise",
        schema: schema_of::<String>,
        is_required: false,
    },
];

static SESSION_PARAMETERS: &[QueryParameter] = &[QueryParameter {
    name: "subject",
    description: "The claim `sub` of the access tokens whose sessions are listed; all sessions \
                  unless said otherwise",
    schema: schema_of::<String>,
    is_required: false,
}];

static END_PARAMETERS: &[QueryParameter] = &[QueryParameter {
    name: "subject",
    description: "The claim `sub` of the access tokens whose sessions end",
    schema: schema_of::<String>,
    is_required: true,
}];

static LIST_PARAMETERS: &[QueryParameter] = &[
    QueryParameter {
        name: "limit",
        description: "Number of titles at most, at least 1; all unless said otherwise",
        schema: schema_of::<NonZeroU32>,
        is_required: false,
    },
    QueryParameter {
        name: "after",
        description: "Titles behind this name: the `next` of the page before",
        schema: schema_of::<String>,
        is_required: false,
    },
    QueryParameter {
        name: "folder",
        description: "Titles in this folder and in folders inside",
        schema: schema_of::<String>,
        is_required: false,
    },
    QueryParameter {
        name: "search",
        description: "Titles whose names have this part, whatever the case of its letters. With a \
                      limit, a page looks at 10,000 names at most, and `next` goes on behind them",
        schema: schema_of::<String>,
        is_required: false,
    },
];

static UPLOAD_PARAMETERS: &[QueryParameter] = &[
    QueryParameter {
        name: "as",
        description: "What the file is: `media` unless said otherwise",
        schema: schema_of::<UploadedAs>,
        is_required: false,
    },
    QueryParameter {
        name: "allow-damaged",
        description: "Take the readable part of a damaged file",
        schema: schema_of::<bool>,
        is_required: false,
    },
    QueryParameter {
        name: "program",
        description: "Number of the programme to take from a file with several",
        schema: schema_of::<u32>,
        is_required: false,
    },
    QueryParameter {
        name: "thumbnails",
        description: "Make thumbnails; seconds from one to the next",
        schema: schema_of::<NonZeroU32>,
        is_required: false,
    },
];

/// The schema of an exponent of Zipf's law.
fn exponent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "minimum": 0, "maximum": MOST_EXPONENT })
}

/// Disks that a plan may have.
pub(super) const PLANNED_DISKS: RangeInclusive<u64> = 1..=10_000;
/// Bytes of memory that a plan may have.
pub(super) const PLANNED_MEMORY: RangeInclusive<u64> = 1 << 20..=1 << 50;
/// Bytes of reads that a plan may have.
pub(super) const PLANNED_READS: RangeInclusive<u64> = 1 << 12..=1 << 26;

/// A request for an operation.
#[derive(Debug)]
pub(crate) struct ApiCall {
    pub(crate) operation: &'static Operation,
    // What the names in braces stand for, in their order.
    names: Vec<String>,
    query: Vec<(String, String)>,
    /// The body, where it is JSON.
    pub(crate) json: Vec<u8>,
}

/// Why a request is for no operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoOperation {
    /// There is nothing at its address.
    Path,
    /// The address has these methods.
    Method(String),
}

/// The operation that a request is for.
pub(crate) fn find(request: &HttpRequest) -> Result<ApiCall, NoOperation> {
    let mut methods = Vec::new();
    for operation in OPERATIONS {
        let Some(names) = names(operation.path, &request.path) else { continue };
        let is_head = request.method == Method::Head && operation.method == Method::Get;
        if operation.method == request.method || is_head {
            let query = request.query.clone();
            return Ok(ApiCall { operation, names, query, json: Vec::new() });
        }
        methods.push(operation.method.name());
        if operation.method == Method::Get {
            methods.push(Method::Head.name());
        }
    }
    if methods.is_empty() {
        return Err(NoOperation::Path);
    }
    methods.push(Method::Options.name());
    Err(NoOperation::Method(methods.join(", ")))
}

/// What the names in braces of a template stand for in a path; `None` if it is another path.
fn names(template: &str, path: &[String]) -> Option<Vec<String>> {
    let parts: Vec<&str> = template.trim_start_matches('/').split('/').collect();
    if parts.len() != path.len() {
        return None;
    }
    let mut names = Vec::new();
    for (part, name) in parts.iter().zip(path) {
        match part.starts_with('{') && !name.is_empty() {
            // Hexadecimal digits of a uuid may be capital letters (RFC 9562).
            true if *part == "{disk}" => names.push(name.to_ascii_lowercase()),
            true => names.push(name.clone()),
            false if part == name => {}
            false => return None,
        }
    }
    Some(names)
}

impl Operation {
    /// Whether it changes anything.
    pub(super) fn is_change(&self) -> bool {
        self.method != Method::Get
    }

    /// Whether it tells nothing of this server.
    pub(super) fn is_public(&self) -> bool {
        self.action == ApiAction::Document
    }

    pub(crate) fn body(&self) -> RequestBody {
        self.body
    }
}

impl ApiCall {
    pub(super) fn action(&self) -> ApiAction {
        self.operation.action
    }

    /// What the name in braces with this index stands for.
    pub(super) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// The session's number that the name in braces with this index stands for.
    pub(super) fn number(&self, index: usize) -> Result<u64, Problem> {
        let name = self.name(index);
        name.parse().map_err(|_| {
            let message = format!("'{}' is no session's number", name.escape_debug());
            Problem::new(404, "no-session", message, "/api/v1/sessions lists them")
        })
    }

    /// The ingest's number that the name in braces with this index stands for.
    pub(super) fn ingest_number(&self, index: usize) -> Result<u64, Problem> {
        let name = self.name(index);
        name.parse().map_err(|_| {
            let message = format!("'{}' is no ingest's number", name.escape_debug());
            Problem::new(404, "no-ingest", message, "/api/v1/ingests lists them")
        })
    }

    pub(super) fn new_name(&self) -> Result<String, Problem> {
        Ok(self.json::<NewName>()?.name)
    }

    pub(super) fn seconds(&self) -> Result<f64, Problem> {
        let CalibrationTime { seconds } = self.json()?;
        match (1.0..=600.0).contains(&seconds) {
            true => Ok(seconds),
            false => Err(bad_body("seconds is from 1 to 600")),
        }
    }

    pub(super) fn stop_seconds(&self) -> Result<f64, Problem> {
        let StopTime { seconds } = self.json()?;
        match (1.0..=86_400.0).contains(&seconds) {
            true => Ok(seconds),
            false => Err(bad_body("seconds is from 1 to 86400")),
        }
    }

    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        // An array would be taken for the values in the order of their names.
        if self.json.trim_ascii_start().first() != Some(&b'{') {
            return Err(bad_body("a JSON object is expected"));
        }
        serde_json::from_slice(&self.json).map_err(|error| bad_body(&error.to_string()))
    }

    fn text(&self, key: &str) -> Option<String> {
        let mut all = self.query.iter();
        all.find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// The subject whose sessions are to be listed.
    pub(super) fn subject(&self) -> Option<String> {
        self.text("subject")
    }

    /// The subject whose sessions are to be ended.
    pub(super) fn subject_to_end(&self) -> Result<String, Problem> {
        self.subject().ok_or_else(|| {
            let message =
                "the parameter 'subject' is missing, and the sessions of all are not ended";
            let hint = "name one, such as ?subject=customer-17; /api/v1/stop ends the server";
            Problem::new(400, "bad-parameter", message, hint)
        })
    }

    /// The titles that are to be listed.
    pub(super) fn selection(&self) -> Result<TitleSelection, Problem> {
        let text = |key: &str| self.text(key);
        let limit = self.parameter("limit", "a number of titles, at least 1")?;
        let (folder, after, search) = (text("folder"), text("after"), text("search"));
        Ok(TitleSelection { folder, after, search, limit })
    }

    /// The title that the query names.
    pub(super) fn title(&self) -> Result<String, Problem> {
        let named = self.query.iter().find(|(name, _)| name == "title");
        named.map(|(_, title)| title.clone()).ok_or_else(|| {
            let message = "the parameter 'title' is missing";
            Problem::new(400, "bad-parameter", message, "name a title; /titles lists them")
        })
    }

    /// Whether it is a watch, whose response has no end.
    pub(crate) fn is_watch(&self) -> bool {
        self.action() == ApiAction::Events
    }

    /// The control request that ingests the uploaded file.
    pub(super) fn ingest(&self, file: &Path) -> Result<Request, Problem> {
        let kind = self.parameter::<UploadedAs>("as", "media or file")?;
        let kind = match kind {
            Some(UploadedAs::File) => TitleKind::File,
            _ => TitleKind::Media,
        };
        Ok(Request::Ingest {
            files: vec![file.to_owned()],
            as_file: kind == TitleKind::File,
            title: Some(self.name(1).to_owned()),
            allow_damaged: self.parameter("allow-damaged", "true or false")?.unwrap_or(false),
            renditions: false,
            program: self.parameter("program", "a number")?,
            subtitles: Vec::new(),
            thumbnails: self.parameter::<NonZeroU32>("thumbnails", "seconds")?.map(u32::from),
            fps: None,
        })
    }

    /// Whether the query has only parameters of the operation, with values that they may have.
    pub(crate) fn check_query(&self) -> Result<(), Problem> {
        let known = |name: &str| {
            name == TOKEN || self.operation.query.iter().any(|parameter| parameter.name == name)
        };
        if let Some((name, _)) = self.query.iter().find(|(name, _)| !known(name)) {
            let message = format!("this operation has no parameter '{}'", name.escape_debug());
            let hint = "/api/v1/openapi.json has those that it has";
            return Err(Problem::new(400, "bad-parameter", message, hint));
        }
        match self.action() {
            ApiAction::Upload | ApiAction::Download => self.ingest(Path::new("")).map(drop),
            ApiAction::Titles => self.selection().map(drop),
            _ => Ok(()),
        }
    }

    pub(super) fn parameter<T: for<'a> Deserialize<'a>>(
        &self,
        name: &str,
        values: &str,
    ) -> Result<Option<T>, Problem> {
        let Some((_, text)) = self.query.iter().find(|(key, _)| key == name) else {
            return Ok(None);
        };
        // A word or a number, as JSON has it.
        let value = serde_json::from_str(text)
            .or_else(|_| serde_json::from_value(serde_json::Value::String(text.clone())));
        value.map(Some).map_err(|_| {
            let message = format!("'{name}' has the value '{}'", text.escape_debug());
            Problem::new(400, "bad-parameter", message, &format!("it takes {values}"))
        })
    }
}

pub(super) fn bad_body(why: &str) -> Problem {
    let message = format!("the body is not what this operation takes: {why}");
    Problem::new(400, "bad-body", message, "/api/v1/openapi.json has its schema")
}

/// The parameter of every address that a token may stand in.
const TOKEN: &str = "token";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parsed;

    /// The name of the operation and its names, or the methods of the address.
    fn found(line: &str) -> String {
        match find(&parsed(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"))) {
            Ok(call) => format!("{} {}", call.operation.id, call.names.join(" ")),
            Err(NoOperation::Path) => "nothing".to_owned(),
            Err(NoOperation::Method(methods)) => methods,
        }
    }

    #[test]
    fn methods_and_addresses_name_operations() {
        for (line, wanted) in [
            ("GET /api/v1/sessions", "listSessions "),
            ("HEAD /api/v1/sessions", "listSessions "),
            ("DELETE /api/v1/sessions/17", "endSession 17"),
            ("PUT /api/v1/disks/D/titles/A%2Fb%20%C3%A4", "uploadTitle d A/b ä"),
            ("PATCH /api/v1/disks/d/titles/..", "renameTitle d .."),
            ("DELETE /api/v1/sessions", "endSessions "),
            ("PATCH /api/v1/sessions", "GET, HEAD, POST, DELETE, OPTIONS"),
            ("POST /api/v1/sessions/17", "GET, HEAD, DELETE, OPTIONS"),
            ("GET /api/v1/disks/d/calibrate", "POST, OPTIONS"),
            ("POST /api/v1/disks/d/titles/x", "downloadTitle d x"),
            ("GET /api/v1/disks/d/titles/", "nothing"),
            ("GET /api/v1/disks//titles", "nothing"),
            ("GET /api/v1/", "nothing"),
            ("GET /api", "nothing"),
            ("GET /api/v2/sessions", "nothing"),
        ] {
            assert_eq!(found(line), wanted, "{line}");
        }
    }

    #[test]
    fn parameters_have_the_values_that_they_may_have() {
        for (query, wanted) in [
            ("", "false true"),
            ("?as=media&thumbnails=10&program=2&token=x", "false true"),
            ("?as=file&allow-damaged=true", "true true"),
            ("?as=film", "bad"),
            ("?allow-damaged=yes", "bad"),
            ("?thumbnails=0", "bad"),
            ("?thumbnails=10s", "bad"),
            ("?program=-1", "bad"),
            ("?title=x", "bad"),
        ] {
            let line = format!("PUT /api/v1/disks/d/titles/x{query} HTTP/1.1\r\nHost: a\r\n\r\n");
            let call = find(&parsed(&line)).unwrap();
            let said = match (call.check_query(), call.ingest(Path::new("f"))) {
                (Ok(()), Ok(Request::Ingest { as_file, title, .. })) => {
                    format!("{as_file} {}", title.as_deref() == Some("x"))
                }
                _ => "bad".to_owned(),
            };
            assert_eq!(said, wanted, "{query}");
        }
    }
}
