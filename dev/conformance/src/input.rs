//! Tools that end a round by asking for input, and finish when the client calls again with it.

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequest, InputResponses,
        Tool,
    },
    service::RequestContext,
};
use serde::{Deserialize, Serialize};

use super::{
    rounds::{self, Answer, StateSeal},
    tools,
};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tools::without_arguments("test_input_required_result_elicitation", "Asks for a name and greets it"),
        tools::without_arguments(
            "test_input_required_result_sampling",
            "Asks the client's model a question and repeats the answer",
        ),
        tools::without_arguments(
            "test_input_required_result_list_roots",
            "Asks for the client's roots and repeats them",
        ),
        tools::without_arguments(
            "test_input_required_result_request_state",
            "Asks for consent and expects its state back",
        ),
        tools::without_arguments(
            "test_input_required_result_tampered_state",
            "Asks for consent and refuses a state that was changed",
        ),
        tools::without_arguments(
            "test_input_required_result_multiple_inputs",
            "Asks three different questions at once",
        ),
        tools::without_arguments(
            "test_input_required_result_multi_round",
            "Asks a second question after the first is answered",
        ),
        tools::without_arguments(
            "test_input_required_result_capabilities",
            "Asks only what the client declares it can answer",
        ),
        tools::without_arguments(
            "test_streaming_elicitation",
            "Asks for a name on a stream that may carry no requests",
        ),
    ]
}

/// One call, with what every fixture of this group needs from it.
struct Round<'a> {
    tool: &'a str,
    responses: Option<&'a InputResponses>,
    state: Option<&'a str>,
    seal: &'a StateSeal,
    context: &'a RequestContext<RoleServer>,
}

/// Marks a state that only says a question was asked.
#[derive(Serialize, Deserialize)]
struct Asked;

/// How far the tool with several rounds got.
#[derive(Serialize, Deserialize)]
enum Step {
    Name,
    Color { name: String },
}

pub(super) fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    seal: &StateSeal,
) -> Result<CallToolResponse, ErrorData> {
    let round = Round {
        tool: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
        seal,
        context,
    };
    match round.tool {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => round.greet(),
        "test_input_required_result_sampling" => round.capital(),
        "test_input_required_result_list_roots" => round.roots(),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => round.consent(),
        "test_input_required_result_multiple_inputs" => round.everything(),
        "test_input_required_result_multi_round" => round.name_then_color(),
        "test_input_required_result_capabilities" => round.whatever_is_declared(),
        other => Err(tools::unanswered(other)),
    }
}

impl Round<'_> {
    fn greet(&self) -> Result<CallToolResponse, ErrorData> {
        match rounds::text_answer(self.responses, "user_name", "name") {
            Answer::Given(name) => Ok(done(format!("Hello, {name}!"))),
            Answer::Refused => Ok(refused()),
            Answer::Missing => self.ask([("user_name", name_question())]),
        }
    }

    fn capital(&self) -> Result<CallToolResponse, ErrorData> {
        match rounds::sampled_text(self.responses, "capital_question") {
            Some(text) => Ok(done(format!("The model says: {text}"))),
            None => self.ask([("capital_question", rounds::sample("What is the capital of France?"))]),
        }
    }

    fn roots(&self) -> Result<CallToolResponse, ErrorData> {
        match rounds::listed_roots(self.responses, "client_roots") {
            Some(roots) => Ok(done(format!("Roots: {}", roots.join(", ")))),
            None => self.ask([("client_roots", rounds::list_roots())]),
        }
    }

    /// Answers without the state of an earlier round are worth nothing here.
    fn consent(&self) -> Result<CallToolResponse, ErrorData> {
        let asked: Option<Asked> = self.opened()?;
        let answer = match asked {
            Some(Asked) => rounds::consent_answer(self.responses, "confirm", "ok"),
            None => Answer::Missing,
        };
        match answer {
            Answer::Given(ok) => Ok(done(format!("state-ok, confirmed: {ok}"))),
            Answer::Refused => Ok(refused()),
            Answer::Missing => {
                self.ask_with_state([("confirm", rounds::elicit_consent("Please confirm", "ok"))], &Asked)
            }
        }
    }

    fn everything(&self) -> Result<CallToolResponse, ErrorData> {
        let asked: Option<Asked> = self.opened()?;
        let name = rounds::text_answer(self.responses, "user_name", "name");
        let greeting = rounds::sampled_text(self.responses, "greeting");
        let roots = rounds::listed_roots(self.responses, "client_roots");
        match (asked, name, greeting, roots) {
            (Some(Asked), Answer::Refused, ..) => Ok(refused()),
            (Some(Asked), Answer::Given(name), Some(greeting), Some(roots)) => {
                Ok(done(format!("{greeting} {name}, you have {} roots", roots.len())))
            }
            _ => self.ask_with_state(
                [
                    ("user_name", name_question()),
                    ("greeting", rounds::sample("Generate a greeting")),
                    ("client_roots", rounds::list_roots()),
                ],
                &Asked,
            ),
        }
    }

    fn name_then_color(&self) -> Result<CallToolResponse, ErrorData> {
        let step = match self.opened()? {
            None => Step::Name,
            Some(Step::Name) => match rounds::text_answer(self.responses, "step1", "name") {
                Answer::Given(name) => Step::Color { name },
                Answer::Refused => return Ok(refused()),
                Answer::Missing => Step::Name,
            },
            Some(Step::Color { name }) => match rounds::text_answer(self.responses, "step2", "color") {
                Answer::Given(color) => {
                    return Ok(done(format!("{name}, your favorite color is {color}")));
                }
                Answer::Refused => return Ok(refused()),
                Answer::Missing => Step::Color { name },
            },
        };
        let question = match &step {
            Step::Name => ("step1", rounds::elicit_text("Step 1: What is your name?", "name")),
            Step::Color { .. } => ("step2", rounds::elicit_text("Step 2: What is your favorite color?", "color")),
        };
        self.ask_with_state([question], &step)
    }

    fn whatever_is_declared(&self) -> Result<CallToolResponse, ErrorData> {
        let declared = self.context.client_capabilities().unwrap_or_default();
        let questions: Vec<_> = [
            declared.elicitation.map(|_| ("user_name", name_question())),
            declared.sampling.map(|_| ("greeting", rounds::sample("Generate a greeting"))),
            declared.roots.map(|_| ("client_roots", rounds::list_roots())),
        ]
        .into_iter()
        .flatten()
        .filter(|(key, _)| self.responses.is_none_or(|responses| !responses.contains_key(*key)))
        .collect();
        if questions.is_empty() {
            return Ok(done("Nothing left to ask this client"));
        }
        self.ask(questions)
    }

    fn opened<T: for<'de> Deserialize<'de>>(&self) -> Result<Option<T>, ErrorData> {
        self.seal.open(self.tool, self.state)
    }

    fn ask<'q>(
        &self,
        questions: impl IntoIterator<Item = (&'q str, InputRequest)>,
    ) -> Result<CallToolResponse, ErrorData> {
        rounds::ask(self.context, questions, None).map(Into::into)
    }

    fn ask_with_state<'q>(
        &self,
        questions: impl IntoIterator<Item = (&'q str, InputRequest)>,
        state: &impl Serialize,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = self.seal.seal(self.tool, state)?;
        rounds::ask(self.context, questions, Some(state)).map(Into::into)
    }
}

pub(super) fn name_question() -> InputRequest {
    rounds::elicit_text("What is your name?", "name")
}

fn done(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

pub(super) fn refused() -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text("The user did not answer")]).into()
}
