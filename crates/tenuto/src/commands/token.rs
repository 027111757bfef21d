//! `token`: makes the keys of a server, and tokens for its viewers, operators and caches.

use crate::args::viewing::TokenArgs;
use crate::failure::Failure;
use serde_json::json;
use server::access::{TitlePatterns, TokenClaims, ViewerLimits, new_key_file};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    if args.new {
        let limits = [args.client.is_some(), args.max_height.is_some(), args.priority.is_some()];
        let is_for_somebody = limits.contains(&true) || args.subject.is_some();
        let asked = is_for_somebody || args.operator || args.origin;
        if !args.title.is_empty() || asked {
            return Err(Failure::usage("--new makes keys, which are for every title and client")
                .hint("make the token with a second command, without --new"));
        }
        new_key_file(&args.keys)?;
        let keys = args.keys.display();
        let page = || format!("{keys} has a new secret: tenuto serve STORE --tokens {keys}\n");
        args.report.show(&json!({ "keys": args.keys }), page);
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let title = match args.title.as_slice() {
        [] => None,
        [one] => Some(TitlePatterns::One(one.clone())),
        several => Some(TitlePatterns::Several(several.to_vec())),
    };
    let claims = TokenClaims {
        exp: now.saturating_add(args.valid).as_secs(),
        nbf: None,
        title,
        ip: args.client,
        limits: ViewerLimits { max_height: args.max_height, priority: args.priority },
        operator: args.operator,
        origin: args.origin,
        sub: args.subject.clone(),
        jti: None,
    };
    let token = claims.sign(&args.keys)?;
    args.report.show(&json!({ "token": token, "claims": claims }), || format!("{token}\n"));
    Ok(())
}
