//! `confirm = "operator"`: an order is sent only after a person has confirmed it outside the model, with
//! `tribune orders confirm`. Each order that waits is a file, so that another process can confirm it.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long an order can be confirmed, from its preview.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(600);
const WAITING: &str = "json";
const CONFIRMED: &str = "confirmed";

/// The orders that wait, in a folder of the data directory.
#[derive(Debug, Clone)]
pub struct WaitingOrders {
    folder: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WaitingOrder {
    pub client_order_id: String,
    pub caller: String,
    /// What would be sent.
    pub order: Value,
}

impl WaitingOrders {
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("orders-waiting") }
    }

    /// By age, oldest first.
    pub fn list(&self) -> Result<Vec<WaitingOrder>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut orders = Vec::new();
        for entry in entries {
            let (path, written) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?.modified()?)))?;
            if written.elapsed().is_ok_and(|age| age > VALID_FOR) {
                std::fs::remove_file(path)?;
            } else if path.extension().is_some_and(|extension| extension == WAITING) {
                orders.push((written, serde_json::from_slice(&std::fs::read(path)?)?));
            }
        }
        orders.sort_by_key(|(written, _)| *written);
        Ok(orders.into_iter().map(|(_, order)| order).collect())
    }

    /// The next call with its preview token places the order.
    pub fn confirm(&self, client_order_id: &str) -> Result<()> {
        if !self.list()?.iter().any(|order| order.client_order_id == client_order_id) {
            return Err(Error::new(ErrorKind::NotFound, format!("no order {client_order_id} waits")));
        }
        std::fs::rename(self.path(client_order_id, WAITING), self.path(client_order_id, CONFIRMED))
    }

    /// Whether an order has been confirmed; if not, it waits from now on.
    pub(crate) fn is_confirmed(&self, order: &WaitingOrder) -> Result<bool> {
        // What is too old goes.
        self.list()?;
        if self.path(&order.client_order_id, CONFIRMED).try_exists()? {
            return Ok(true);
        }
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(self.path(&order.client_order_id, WAITING), serde_json::to_vec(order)?)?;
        Ok(false)
    }

    fn path(&self, client_order_id: &str, state: &str) -> PathBuf {
        self.folder.join(format!("{client_order_id}.{state}"))
    }
}
