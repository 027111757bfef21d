//! What a player asks to be admitted with.

use super::Decision;
use crate::access::Permit;
use crate::http::refusals::bad_parameter;
use crate::http::request::HttpRequest;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::PlayRequest;
use crate::playback_params;
use crate::presentation::Presentation;
use crate::shared::Shared;
use engine::MaxWait;
use std::sync::Arc;
use std::time::Duration;

/// The request of a player that takes the best offer of a file and plays from the beginning.
pub(crate) fn play(
    title: Arc<OpenTitle>,
    presentation: Arc<Presentation>,
    name: String,
    max_wait: MaxWait,
) -> PlayRequest {
    PlayRequest::new(title, presentation, name, DeliveryFormat::Progressive, max_wait)
}

/// The longest time that the player waits for its start: its own, else the server's. For a director
/// it is the disk's: behind others its viewer does not wait, because it asks another node.
pub(super) fn max_wait(shared: &Shared, request: &HttpRequest) -> Result<MaxWait, Decision> {
    if request.viewer.is_some() {
        let for_disk = shared.settings().wait.min(before_a_director(request));
        return Ok(MaxWait { for_disk, ..MaxWait::default() });
    }
    let asked = playback_params::max_wait(&request.query).map_err(|why| bad_parameter(&why))?;
    Ok(MaxWait {
        time: asked.unwrap_or(shared.settings().wait),
        is_chosen: asked.is_some(),
        ..MaxWait::default()
    })
}

/// What is left of that after the operator's service has decided.
pub(super) fn before_a_director(request: &HttpRequest) -> Duration {
    BEFORE_A_DIRECTOR.saturating_sub(request.authorized.unwrap_or_default())
}

/// What the player's token permits, with the priority that the player asks for if that is lower.
pub(super) fn permit(request: &HttpRequest) -> Result<Permit, Decision> {
    let asked = playback_params::priority(&request.query).map_err(|why| bad_parameter(&why))?;
    Ok(request.permit.lowered_to(asked))
}

/// The longest time for which a director's viewer waits for the disk, and for the operator's
/// service: directors wait a second for the answer.
pub(crate) const BEFORE_A_DIRECTOR: Duration = Duration::from_millis(600);
