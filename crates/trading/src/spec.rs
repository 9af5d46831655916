//! What the specs of the tools share.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tribune_core::{CallDisplay, Error, Hints, JsonObject, Result, ToolSpec};
use tribune_market_parts::tool_schema;

use super::answers::Answer;
use super::order::OrderName;

/// Reads an external account that changes all the time.
pub(super) const LOOK: Hints = Hints { read_only: true, destructive: false, idempotent: false, open_world: true };

pub(super) const CHANGE: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

/// The spec of a tool that takes `A` and answers with `O` and its times. `A` refuses unknown fields: ignoring one could change the
/// meaning of an order.
pub(super) fn spec<A: JsonSchema, O: JsonSchema>(
    name: &str,
    title: &str,
    description: impl Into<String>,
    hints: Hints,
) -> ToolSpec {
    let arguments = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null));
    ToolSpec {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.into(),
        input_schema: tool_schema::<A>(arguments),
        output_schema: tool_schema::<Answer<O>>(SchemaSettings::draft2020_12().for_serialize()),
        hints,
        icon: None,
        display: CallDisplay { subject: Some("symbol"), ..CallDisplay::default() },
        aliases: vec![
            ("orderId", "order_id"),
            ("origClientOrderId", "client_order_id"),
            ("timeInForce", "time_in_force"),
            ("quoteOrderQty", "quote_quantity"),
        ],
    }
}

/// An argument is left out, not null.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let known = types.iter().find(|kind| **kind != "null").cloned();
        schema.insert("type".to_owned(), known.unwrap_or_default());
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// Arguments that have been checked against their schema.
pub(super) fn arguments<T: DeserializeOwned>(args: JsonObject) -> Result<T> {
    serde_json::from_value(Value::Object(args)).map_err(|error| Error::invalid_argument(error.to_string()))
}

/// Names one order.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneOrder {
    /// The symbol exactly as the exchange has it, for example BTCUSDT.
    #[schemars(length(min = 1, max = 40))]
    pub(super) symbol: String,
    /// The exchange's number of the order; or give client_order_id.
    order_id: Option<u64>,
    /// The name under which the order was placed; or give order_id.
    #[schemars(length(min = 1, max = 36))]
    client_order_id: Option<String>,
}

impl OneOrder {
    pub(super) fn name(&self) -> Result<OrderName> {
        match (self.order_id, &self.client_order_id) {
            (Some(number), None) => Ok(OrderName::Number(number)),
            (None, Some(name)) => Ok(OrderName::Client(name.clone())),
            _ => Err(Error::invalid_argument("name the order by either order_id or client_order_id")),
        }
    }
}
