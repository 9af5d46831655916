//! The parts of a multi-round-trip request: questions, answers and sealed state between rounds.
#![expect(deprecated, reason = "a round may still ask for sampling and roots, and the suite checks both")]

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{
        ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ElicitationSchema, ErrorData,
        InputRequest, InputRequests, InputRequiredResult, InputResponses, ListRootsRequest, ListRootsResult,
        RequestStateCodec, RootsCapabilities, SamplingCapability, SamplingMessage, SealOptions,
    },
    service::RequestContext,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// How long a client may take to answer one round.
const PATIENCE: Duration = Duration::from_secs(600);

/// What came back for one question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer<T> {
    Given(T),
    /// The user declined or dismissed the question.
    Refused,
    /// Absent, or not of the shape that was asked for: the question has to be asked again.
    Missing,
}

/// Asks the user for one text.
pub(super) fn elicit_text(message: &str, field: &str) -> InputRequest {
    elicit(message, ElicitationSchema::builder().required_string(field).build_unchecked())
}

/// Asks the user for a yes or a no.
pub(super) fn elicit_consent(message: &str, field: &str) -> InputRequest {
    elicit(message, ElicitationSchema::builder().required_bool(field).build_unchecked())
}

fn elicit(message: &str, requested_schema: ElicitationSchema) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema,
    }))
}

/// Asks the client's model.
pub(super) fn sample(prompt: &str) -> InputRequest {
    InputRequest::CreateMessage(CreateMessageRequest::new(CreateMessageRequestParams::new(
        vec![SamplingMessage::user_text(prompt)],
        100,
    )))
}

/// Asks for the client's roots.
pub(super) fn list_roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

pub(super) fn text_answer(responses: Option<&InputResponses>, key: &str, field: &str) -> Answer<String> {
    elicited(responses, key, field, |value| value.as_str().map(str::to_owned))
}

pub(super) fn consent_answer(responses: Option<&InputResponses>, key: &str, field: &str) -> Answer<bool> {
    elicited(responses, key, field, Value::as_bool)
}

fn elicited<T>(
    responses: Option<&InputResponses>,
    key: &str,
    field: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Answer<T> {
    let Some(result) = response::<ElicitResult>(responses, key) else {
        return Answer::Missing;
    };
    match result.action {
        ElicitationAction::Accept => result
            .content
            .as_ref()
            .and_then(|content| content.get(field))
            .and_then(read)
            .map_or(Answer::Missing, Answer::Given),
        ElicitationAction::Decline | ElicitationAction::Cancel => Answer::Refused,
        _ => Answer::Missing,
    }
}

/// The text the client's model produced.
pub(super) fn sampled_text(responses: Option<&InputResponses>, key: &str) -> Option<String> {
    let result: CreateMessageResult = response(responses, key)?;
    let text = result.message.content.first()?.as_text()?;
    Some(text.text.clone())
}

/// The URIs of the roots the client listed.
pub(super) fn listed_roots(responses: Option<&InputResponses>, key: &str) -> Option<Vec<String>> {
    let result: ListRootsResult = response(responses, key)?;
    Some(result.roots.into_iter().map(|root| root.uri).collect())
}

fn response<T: DeserializeOwned>(responses: Option<&InputResponses>, key: &str) -> Option<T> {
    let value = responses?.get(key)?;
    T::deserialize(value).ok()
}

/// Ends a round with questions, unless the client cannot answer one of them.
pub(super) fn ask<'a>(
    context: &RequestContext<RoleServer>,
    questions: impl IntoIterator<Item = (&'a str, InputRequest)>,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    let requests: InputRequests = questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
    require_capabilities(&context.client_capabilities().unwrap_or_default(), requests.values())?;
    Ok(InputRequiredResult::new(Some(requests), state))
}

/// A server must not ask for what a client did not declare it can answer.
fn require_capabilities<'a>(
    declared: &ClientCapabilities,
    questions: impl Iterator<Item = &'a InputRequest>,
) -> Result<(), ErrorData> {
    let mut missing = ClientCapabilities::default();
    for question in questions {
        match question {
            InputRequest::Elicitation(_) if declared.elicitation.is_none() => {
                missing.elicitation = Some(ElicitationCapability::default());
            }
            InputRequest::CreateMessage(_) if declared.sampling.is_none() => {
                missing.sampling = Some(SamplingCapability::default());
            }
            InputRequest::ListRoots(_) if declared.roots.is_none() => {
                missing.roots = Some(RootsCapabilities::default());
            }
            _ => {}
        }
    }
    if missing == ClientCapabilities::default() {
        Ok(())
    } else {
        Err(ErrorData::missing_required_client_capability(missing))
    }
}

/// Seals what a fixture has to remember between two rounds.
///
/// The client carries the state, so it is signed: with a key of this process, for one tool, and
/// for as long as a client may reasonably take to answer.
#[derive(Debug)]
pub(super) struct StateSeal(RequestStateCodec);

impl Default for StateSeal {
    fn default() -> Self {
        let key: [u8; RequestStateCodec::MIN_KEY_LENGTH] = rand::random();
        Self(RequestStateCodec::new_unchecked(key))
    }
}

impl StateSeal {
    pub(super) fn seal(&self, tool: &str, state: &impl Serialize) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(tool.as_bytes()).ttl(PATIENCE);
        self.0.seal_json_with(state, &options).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Opens the state a client echoed, or `None` on a first round.
    ///
    /// Why a state was refused stays in the log: told to the client, it would help to forge one.
    pub(super) fn open<T: DeserializeOwned>(&self, tool: &str, sealed: Option<&str>) -> Result<Option<T>, ErrorData> {
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        self.0.open_json_with(sealed, tool.as_bytes()).map(Some).map_err(|error| {
            tracing::debug!(%error, tool, "refused a request state");
            ErrorData::invalid_params("requestState failed verification", None)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn responses(value: Value) -> InputResponses {
        InputResponses::from([("key".to_owned(), value)])
    }

    #[test]
    fn an_answer_is_given_refused_or_missing() {
        let read = |value| text_answer(Some(&responses(value)), "key", "name");
        assert_eq!(read(json!({ "action": "accept", "content": { "name": "Ada" } })), Answer::Given("Ada".to_owned()));
        assert_eq!(read(json!({ "action": "decline" })), Answer::Refused);
        assert_eq!(read(json!({ "action": "accept" })), Answer::Missing);
        assert_eq!(read(json!(12345)), Answer::Missing);
        assert_eq!(text_answer(None, "key", "name"), Answer::Missing);
    }

    #[test]
    fn a_state_opens_only_unchanged_and_for_its_tool() {
        let seal = StateSeal::default();
        let sealed = seal.seal("tool", &1_u8).expect("a number serializes");
        assert_eq!(seal.open("tool", Some(&sealed)), Ok(Some(1_u8)));
        assert_eq!(seal.open::<u8>("tool", None), Ok(None));
        assert!(seal.open::<u8>("other", Some(&sealed)).is_err());
        assert!(seal.open::<u8>("tool", Some(&format!("{sealed}-TAMPERED"))).is_err());
        assert!(StateSeal::default().open::<u8>("tool", Some(&sealed)).is_err());
    }
}
