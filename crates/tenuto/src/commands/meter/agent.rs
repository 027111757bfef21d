//! `meter agent`: measures for controllers.

use super::options::token;
use crate::args::meter::AgentArgs;
use crate::failure::Failure;
use crate::out;
use meter::{AgentConfig, serve_agent, serve_agent_stdio};

pub(super) fn agent(args: &AgentArgs) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let config = AgentConfig { allowed: args.dirs.clone(), program };
    if args.stdio {
        return Ok(serve_agent_stdio(&config)?);
    }
    let token = token(args.token_file.as_deref())?;
    let listening = |address| out::print(&format!("agent on {address}\n"));
    Ok(serve_agent(&config, token, args.listen, &listening, out::note)?)
}
