//! The tools of a market: one object for each, made of a form (what it is called, takes and gives) and the market.

mod arguments;
mod forms;

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};
use tribune_citations::Pool;
use tribune_core::{CallContext, Error, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use crate::citing::Citing;
use crate::kinds::schema::Shape;
use crate::kinds::{self, Answer};
use arguments::{Arguments, normalise};
use forms::{EXCHANGE_INFO, Form, TICKER};

pub(crate) fn all(citing: &Arc<Citing>) -> Vec<Arc<dyn Tool>> {
    let tool =
        |form: Form| -> Arc<dyn Tool> { Arc::new(MarketTool { spec: form.spec(), form, citing: citing.clone() }) };
    Form::all().into_iter().map(tool).collect()
}

struct MarketTool {
    form: Form,
    spec: ToolSpec,
    citing: Arc<Citing>,
}

#[async_trait]
impl Tool for MarketTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// With a dot, which some hosts do not allow, and without the venue.
    fn also_called(&self) -> Vec<String> {
        let bare = self.spec.name.trim_start_matches("binance_");
        vec![format!("binance.{bare}"), bare.to_owned()]
    }

    fn normalise(&self, args: &mut JsonObject) {
        let table = self.citing.market.known_symbols();
        normalise(args, table.as_deref());
    }

    async fn call(&self, mut args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        self.add_defaults(&mut args);
        let args = Arguments(&args);
        let (market, name) = (&self.citing.market, &self.spec.name);
        let pool = Pool::new(cx);
        let symbols = args.symbols();
        match (self.form.shape, symbols.as_slice()) {
            (Shape::AllMarkets, _) => self.one(pool, "", &args).await,
            (Shape::Several, [_, _, ..]) => self.several(pool, &symbols, &args).await,
            (Shape::Several, _) => Err(Error::invalid_argument(format!(
                "{name} was not run: it takes two different symbols, and `symbols` has one; give another beside it"
            ))),
            (_, []) if name == EXCHANGE_INFO => ToolOutput::structured(&kinds::info::exchange(market).await?, 1),
            (_, []) => Err(Error::invalid_argument(format!(
                "{name} was not run: give `symbol`, for example BTCUSDT. Search finds the symbol of an asset by its name."
            ))),
            (_, [one]) if !args.is_list() => self.one(pool, one, &args).await,
            (_, several) => self.several(pool, several, &args).await,
        }
    }
}

impl MarketTool {
    fn add_defaults(&self, args: &mut JsonObject) {
        let properties = self.spec.input_schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if let Some(default) = schema.get("default") {
                args.entry(name).or_insert_with(|| default.clone());
            }
        }
    }

    async fn one(&self, pool: Pool, symbol: &str, args: &Arguments<'_>) -> Result<ToolOutput> {
        let answer = (self.form.load)(&self.citing.market, symbol, args).await?;
        let url = self.citing.cite(pool, &answer, &answer.document()).await;
        ToolOutput::structured(&answer.object(&url), 1)
    }

    /// One answer for each symbol; a failure affects only its own.
    async fn several(&self, pool: Pool, symbols: &[String], args: &Arguments<'_>) -> Result<ToolOutput> {
        let market = &self.citing.market;
        let answers: Vec<Result<Answer>> = match self.spec.name.as_str() {
            TICKER => kinds::ticker::load_several(market, symbols).await,
            _ => join_all(symbols.iter().map(|symbol| (self.form.load)(market, symbol, args))).await,
        };
        let (mut answered, mut failed) = (Vec::new(), Vec::new());
        for (symbol, answer) in symbols.iter().zip(answers) {
            match answer {
                Ok(answer) => answered.push((self.citing.cite(pool, &answer, &answer.document()).await, answer)),
                Err(error) => failed.push((symbol, error)),
            }
        }
        if answered.is_empty()
            && let Some((_, first)) = failed.first()
        {
            let mut reasons: Vec<&str> = failed.iter().map(|(_, error)| error.message()).collect();
            reasons.dedup();
            return Err(Error::new(first.kind(), reasons.join(" ")));
        }
        let results: Vec<_> = answered.iter().map(|(url, answer)| answer.object(url)).collect();
        let failed = failed.iter();
        let failed = failed.map(|(symbol, error)| json!({"symbol": symbol, "reason": error.message()}));
        let failed: Vec<Value> = failed.collect();
        ToolOutput::structured(&Several { results, failed }, answered.len())
    }
}

/// The answers for several symbols, and the symbols without one.
#[derive(serde::Serialize)]
struct Several<R> {
    results: Vec<R>,
    failed: Vec<Value>,
}
