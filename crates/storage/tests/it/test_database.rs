//! A database for one test.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tempfile::TempDir;
use tribune_storage::{Backend, Store};

use crate::postgres_server::PostgresServer;
use crate::proxy::Proxy;

/// Empty at first, and removed when it is dropped, except for its schema in the server of `DATABASE_URL`.
pub struct TestDatabase {
    place: Backend,
    _folder: Option<TempDir>,
    _server: Option<Arc<PostgresServer>>,
}

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl TestDatabase {
    pub async fn new(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::sqlite(),
            Kind::Postgres => Self::postgres().await,
        }
    }

    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { place: Backend::Sqlite(folder.path().join("tribune.db")), _folder: Some(folder), _server: None }
    }

    /// Its own schema, in the server of `DATABASE_URL` or in one that the tests start.
    pub async fn postgres() -> Self {
        let (url, server) = match std::env::var("DATABASE_URL") {
            Ok(url) => (url, None),
            Err(_) => {
                let server = tokio::task::spawn_blocking(PostgresServer::shared).await.expect("a server");
                (server.url(), Some(server))
            }
        };
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let schema = format!("tribune_test_{}_{number}", std::process::id());
        run_sql(&url, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")).await;
        let joint = if url.contains('?') { '&' } else { '?' };
        Self {
            place: Backend::Postgres(format!("{url}{joint}options=-csearch_path%3D{schema}&application_name={schema}")),
            _folder: None,
            _server: server,
        }
    }

    /// A new store on this database, as in another process.
    pub fn store(&self) -> Store {
        Store::new(self.place.clone()).expect("a store")
    }

    /// A store that reaches PostgreSQL through a proxy.
    pub async fn behind_proxy(&self) -> (Proxy, Store) {
        let Backend::Postgres(url) = &self.place else {
            panic!("not PostgreSQL");
        };
        let server = PgConnectOptions::from_str(url).expect("an address");
        let mut addresses = tokio::net::lookup_host((server.get_host(), server.get_port())).await.expect("a host");
        let proxy = Proxy::to(addresses.next().expect("an address")).await;
        let place = Backend::Postgres(format!("{url}&host=127.0.0.1&port={}", proxy.port()));
        (proxy, Store::new(place).expect("a store"))
    }

    pub fn place(&self) -> &Backend {
        &self.place
    }

    pub fn sqlite_path(&self) -> PathBuf {
        match &self.place {
            Backend::Sqlite(path) => path.clone(),
            Backend::Postgres(_) => panic!("not SQLite"),
        }
    }

    /// Returns when the server has noticed that its clients are gone: until then it may still be applying their last
    /// change.
    pub async fn wait_for_clients_to_go(&self) {
        let Backend::Postgres(url) = &self.place else {
            return;
        };
        let others = "SELECT 1 FROM pg_stat_activity \
                      WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
        let mut connection = sqlx::PgConnection::connect(url).await.expect("a connection");
        while !sqlx::query(others).fetch_all(&mut connection).await.expect("an answer").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        connection.close().await.expect("it closes");
    }

    /// Runs SQL without the store.
    pub async fn run_sql(&self, sql: &str) {
        match &self.place {
            Backend::Postgres(url) => run_sql(url, sql).await,
            Backend::Sqlite(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = options.connect().await.expect("a connection");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.expect(sql);
                connection.close().await.expect("it closes");
            }
        }
    }
}

async fn run_sql(url: &str, sql: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.expect("a connection");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.expect(sql);
    connection.close().await.expect("it closes");
}
