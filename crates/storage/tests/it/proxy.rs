//! What can happen between Tribune and a server: answers get lost, and connections die without a word.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How an answer gets lost.
#[derive(Debug, Clone, Copy)]
pub enum Loss {
    Broken,
    Silent,
}

#[derive(Default)]
struct Plan {
    /// From when a request has these bytes in it, its connection loses the answers.
    loss: Mutex<Option<(&'static str, Loss)>>,
    links: Mutex<Vec<Arc<AtomicBool>>>,
}

pub struct Proxy {
    port: u16,
    plan: Arc<Plan>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let plan = Arc::new(Plan::default());
        let task = tokio::spawn(serve(listener, server, Arc::clone(&plan)));
        Self { port, plan, task }
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn lose_answers_to(&self, request: &'static str, loss: Loss) {
        *self.plan.loss.lock().unwrap_or_else(PoisonError::into_inner) = Some((request, loss));
    }

    /// Nothing goes through the connections that there are, and neither end is told. New ones are well.
    pub fn silence(&self) -> usize {
        let mut links = self.plan.links.lock().unwrap_or_else(PoisonError::into_inner);
        for link in links.iter() {
            link.store(true, Ordering::Release);
        }
        links.drain(..).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, plan: Arc<Plan>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(server).await.expect("the server is there");
        let silent = Arc::new(AtomicBool::new(false));
        plan.links.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&silent));
        tokio::spawn(link(client, server, silent, Arc::clone(&plan)));
    }
}

/// When one direction ends, so does the other.
async fn link(client: TcpStream, server: TcpStream, silent: Arc<AtomicBool>, plan: Arc<Plan>) {
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let loses = AtomicBool::new(false);
    let requests = pump(client_reads, server_writes, |bytes| {
        let loss = *plan.loss.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((request, _)) = loss
            && bytes.windows(request.len()).any(|part| part == request.as_bytes())
        {
            loses.store(true, Ordering::Release);
        }
        pass_unless(silent.load(Ordering::Acquire))
    });
    let answers = pump(server_reads, client_writes, |_| {
        let loss = *plan.loss.lock().unwrap_or_else(PoisonError::into_inner);
        match loss {
            Some((_, Loss::Broken)) if loses.load(Ordering::Acquire) => Fate::End,
            Some((_, Loss::Silent)) if loses.load(Ordering::Acquire) => Fate::Lost,
            _ => pass_unless(silent.load(Ordering::Acquire)),
        }
    });
    tokio::select! {
        () = requests => {}
        () = answers => {}
    }
}

enum Fate {
    Passed,
    Lost,
    End,
}

fn pass_unless(silent: bool) -> Fate {
    if silent { Fate::Lost } else { Fate::Passed }
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, fate: impl Fn(&[u8]) -> Fate) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        match fate(bytes) {
            Fate::Lost => {}
            Fate::End => return,
            Fate::Passed => {
                if to.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}
