//! `tribune orders`: those that wait until a person confirms them (`confirm = "operator"`).

use std::process::ExitCode;

use tribune_trading::confirm::WaitingOrders;

use super::{config, print};
use crate::cli::{Common, OrdersVerb};

pub fn run(common: &Common, verb: Option<&OrdersVerb>) -> anyhow::Result<ExitCode> {
    let waiting = WaitingOrders::new(&config(common)?.data_dir);
    if let Some(OrdersVerb::Confirm { id }) = verb {
        waiting.confirm(id)?;
        print(&format!("Confirmed {id}: the next call with its preview token places it."))?;
        return Ok(ExitCode::SUCCESS);
    }
    let orders = waiting.list()?;
    if orders.is_empty() {
        print("No order is waiting for a confirmation.")?;
    }
    for order in orders {
        print(&format!("{}  {}  by {}", order.client_order_id, order.order, order.caller))?;
    }
    Ok(ExitCode::SUCCESS)
}
