//! The table of operations: requests are routed by it ([`call`](super::call)), and the OpenAPI
//! document is made from it.

use super::bodies::{CalibrationTime, DownloadedTitle, NewName, SentTitle, StopTime, UploadedAs};
use super::openapi::{SchemaOf, any_object, schema_of, within};
use crate::http::Method;
use crate::plan::{LONGEST_WITHIN, MOST_EXPONENT, MOST_TITLES, RATES};
use crate::wire;
use schemars::{Schema, SchemaGenerator, json_schema};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

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
