//! The OpenAPI 3.1 document of the admin API, from the table of operations and the types of its
//! bodies.

use super::operations::{ApiAction, OPERATIONS, Operation, QueryParameter, RequestBody};
use super::problem::ProblemDetails;
use crate::http::PROBLEM_TYPE;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// How the schema of a type is made.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`, by reference where it has a name.
pub(super) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of a whole number from `LEAST` to `MOST`.
pub(super) fn within<const LEAST: u64, const MOST: u64>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
}

/// The schema of any object.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method.name().to_ascii_lowercase()] =
            described(operation, &mut generator);
    }
    let problem = schema_of::<ProblemDetails>(&mut generator);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Admin API of tenuto serve",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": "Sizes are bytes, rates bits per second, times seconds with fractions, \
                            moments Unix seconds. Errors are problem details (RFC 9457). A method that \
                            an address does not have is answered with 405, and `Allow` names those \
                            that it has.",
        },
        "servers": [{
            "url": "/",
            "description": "The server that this document comes from",
        }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Problem": problem_with(&problem, &json!({})),
                "NotPermitted": problem_with(&problem, &json!({
                    "WWW-Authenticate": of_string("With tokens: what the token lacks (RFC 6750)"),
                })),
                "TryLater": problem_with(&problem, &json!({
                    "Retry-After": {
                        "description": "Seconds after which it may be done, where a time is known",
                        "schema": { "type": "integer", "minimum": 1 },
                    },
                })),
            },
            "securitySchemes": {
                "operator": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of `tenuto token KEYS --operator`. Where the server has \
                                    no --tokens, reads need none, and changes are not allowed.",
                },
            },
        },
    })
}

fn problem_with(schema: &Schema, fields: &Value) -> Value {
    let mut response = json!({
        "description": "Why it was not done, and what to do",
        "content": { PROBLEM_TYPE: { "schema": schema } },
    });
    if fields.as_object().is_some_and(|fields| !fields.is_empty()) {
        response["headers"] = fields.clone();
    }
    response
}

fn of_string(description: &str) -> Value {
    json!({ "description": description, "schema": { "type": "string" } })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut success = json!({ "description": "Done" });
    if let Some(schema) = operation.response {
        success["content"] = json!({ "application/json": { "schema": schema(generator) } });
    }
    if operation.action == ApiAction::Events {
        success["content"] = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    }
    if operation.status == 201 {
        let what = "The address of the title or session in this API";
        success["headers"] = json!({ "Location": of_string(what) });
    }
    responses.insert(operation.status.to_string(), success);
    let of_all: &[u16] = if operation.is_public() { &[] } else { OF_ALL };
    let of_bodies: &[u16] = match operation.body {
        RequestBody::None => &[],
        RequestBody::Json(_) | RequestBody::File => OF_BODIES,
    };
    let of_changes: &[u16] = if operation.is_change() { &[412] } else { &[] };
    for status in [operation.errors, of_all, of_bodies, of_changes].into_iter().flatten() {
        let kind = match status {
            401 | 403 => "NotPermitted",
            429 | 503 => "TryLater",
            _ => "Problem",
        };
        let problem = json!({ "$ref": format!("#/components/responses/{kind}") });
        responses.insert(status.to_string(), problem);
    }
    responses.sort_keys();
    let mut value = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation, generator),
        "responses": responses,
        "security": if operation.is_public() { json!([]) } else { json!([{ "operator": [] }]) },
    });
    match operation.body {
        RequestBody::None => {}
        RequestBody::Json(schema) => {
            let content = json!({ "application/json": { "schema": schema(generator) } });
            value["requestBody"] = json!({ "required": true, "content": content });
        }
        RequestBody::File => {
            let schema = json!({ "type": "string", "format": "binary" });
            let content = json!({ "application/octet-stream": { "schema": schema } });
            value["requestBody"] = json!({ "required": true, "content": content });
        }
    }
    value
}

fn parameters(operation: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let parts = operation.path.split('/').filter_map(|part| part.strip_prefix('{'));
    let in_path = parts.map(|part| {
        let name = part.trim_end_matches('}');
        let (about, schema) = match name {
            "session" => ("The session's number", json!({ "type": "integer", "minimum": 0 })),
            "ingest" => ("The ingest's number", json!({ "type": "integer", "minimum": 0 })),
            "disk" => ("The store's uuid", json!({ "type": "string", "format": "uuid" })),
            _ => ("The title's name, in percent-encoding", json!({ "type": "string" })),
        };
        let (place, required) = ("path", true);
        json!({ "name": name, "in": place, "required": required, "description": about, "schema": schema })
    });
    let in_query = operation.query.iter().map(|parameter| {
        let QueryParameter { name, description, schema, is_required } = parameter;
        let schema = schema(generator);
        json!({
            "name": name,
            "in": "query",
            "required": is_required,
            "description": description,
            "schema": schema,
        })
    });
    in_path.chain(in_query).collect()
}

/// The errors of every operation that needs a token: 401, 403, a client with too many connections,
/// a server that is busy or ends, and a store that cannot be read or written.
const OF_ALL: &[u16] = &[400, 401, 403, 429, 500, 503];
/// The errors of every body: it comes too slowly, its length is not stated, it is too long, or of
/// another type.
const OF_BODIES: &[u16] = &[408, 411, 413, 415];
