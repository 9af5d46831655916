//! What the schemas of the tools share.

use serde_json::{Value, json};
use tribune_core::wire::object;
use tribune_core::{CallDisplay, Hints, JsonObject, ToolSpec};

use super::entry::OrderName;
use tribune_binance::rest::RestError;

/// The longest list: a hundred orders fit the size that hosts accept.
pub(super) const MAX_LISTED: u32 = 100;

/// Reads an external account that changes all the time.
pub(super) const LOOK: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: false,
    open_world: true,
};

pub(super) const CHANGE: Hints = Hints {
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: true,
};

pub(super) struct Draft {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: String,
    pub(super) arguments: Value,
    pub(super) required: &'static [&'static str],
    pub(super) output: Value,
    pub(super) output_required: &'static [&'static str],
    pub(super) hints: Hints,
}

impl Draft {
    /// Unknown arguments are refused: ignoring one could change the meaning of an order.
    pub(super) fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            description: self.description,
            input_schema: object(json!({
                "type": "object",
                "properties": self.arguments,
                "required": self.required,
                "additionalProperties": false,
            })),
            output_schema: object(json!({
                "type": "object",
                "properties": self.output,
                "required": self.output_required,
            })),
            hints: self.hints,
            icon: None,
            display: CallDisplay::default(),
            aliases: vec![
                ("orderId", "order_id"),
                ("origClientOrderId", "client_order_id"),
                ("timeInForce", "time_in_force"),
                ("quoteOrderQty", "quote_quantity"),
            ],
        }
    }
}

pub(super) fn symbol() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 40,
        "description": "The symbol exactly as the exchange has it, for example BTCUSDT.",
    })
}

pub(super) fn decimal(meaning: &str) -> Value {
    json!({
        "type": "string",
        "pattern": r"^[0-9]{1,15}(\.[0-9]{1,8})?$",
        "description": format!("{meaning} A decimal number as a string, for example \"0.015\"."),
    })
}

pub(super) fn order_id() -> Value {
    json!({"type": "integer", "minimum": 0, "description": "The exchange's number of the order; or give client_order_id."})
}

pub(super) fn client_order_id() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 36,
        "description": "The name under which the order was placed; or give order_id.",
    })
}

/// An order as the exchange has it, in answers.
pub(super) fn order_state() -> Value {
    let text = json!({"type": "string"});
    let text_or_null = json!({"type": ["string", "null"]});
    json!({
        "type": "object",
        "properties": {
            "symbol": text, "order_id": {"type": "integer"}, "client_order_id": text, "side": text, "type": text,
            "status": {"type": "string", "description": "NEW, PARTIALLY_FILLED, FILLED, CANCELED, REJECTED or EXPIRED."},
            "time_in_force": text, "price": text_or_null, "quantity": text, "executed_quantity": text,
            "executed_quote_quantity": text_or_null, "time": text_or_null,
        },
    })
}

/// The fields of [`super::answers::Times`], beside others.
pub(super) fn with_times(mut fields: Value) -> Value {
    let times = object(json!({
        "exchange_time": {"type": ["string", "null"], "description": "By the exchange's clock, where it says so."},
        "received_time": {"type": "string"},
        "age_ms": {"type": "integer"},
        "source": {"type": "string"},
        "simulated": {"type": "boolean", "description": "True if the exchange is a simulation."},
    }));
    if let Value::Object(fields) = &mut fields {
        fields.extend(times);
    }
    fields
}

/// `btc/usdt` becomes `BTCUSDT`; nothing else is guessed.
pub(super) fn normalise_symbol(args: &mut JsonObject) {
    if let Some(Value::String(symbol)) = args.get_mut("symbol") {
        *symbol = symbol.trim().to_uppercase().replace(['/', '-', '_', ' '], "");
    }
}

pub(super) fn text<'a>(args: &'a JsonObject, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// The order that a caller names.
pub(super) fn which_order(args: &JsonObject) -> Result<OrderName, RestError> {
    let number = args.get("order_id").and_then(Value::as_u64);
    match (number, text(args, "client_order_id")) {
        (Some(number), None) => Ok(OrderName::Number(number)),
        (None, Some(name)) => Ok(OrderName::Client(name.to_owned())),
        _ => Err(RestError::Invalid(
            "name the order by either order_id or client_order_id".to_owned(),
        )),
    }
}
