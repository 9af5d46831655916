//! A keep-alive HTTP/1.1 client with as little in it as the load needs.
//!
//! The client shares the machine with the server under test, so every
//! microsecond spent here is taken from the server. Hence no general client:
//! one buffer for each connection, no allocation once it has grown.

use std::{net::SocketAddr, ops::Range};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An answer longer than this is a fault in the server under test.
const MAX_ANSWER: usize = 16 << 20;
const MAX_HEADERS: usize = 32;

pub struct Connection {
    stream: TcpStream,
    raw: Vec<u8>,
    /// Only used for chunked answers; others are read in place.
    unchunked: Vec<u8>,
}

pub struct Response<'a> {
    pub status: u16,
    pub body: &'a [u8],
    head: &'a [u8],
}

impl Response<'_> {
    /// Looks a header up by parsing the head again: only the capture needs it,
    /// and the load must not pay for it.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(self.head).ok()?;
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        String::from_utf8(found.value.to_vec()).ok()
    }
}

enum Framing {
    Length(usize),
    Chunked,
}

struct Head {
    status: u16,
    length: usize,
    framing: Framing,
}

enum Body {
    InPlace(Range<usize>),
    Unchunked,
}

impl Connection {
    pub async fn open(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).await.context("connect")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        Ok(Self { stream, raw: Vec::with_capacity(16 << 10), unchunked: Vec::new() })
    }

    /// Sends one prepared request and reads its whole answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Response<'_>> {
        self.raw.clear();
        self.stream.write_all(request).await.context("write")?;
        let head = self.read_head().await?;
        let body = match head.framing {
            Framing::Length(length) => self.read_length(head.length, length).await?,
            Framing::Chunked => self.read_chunks(head.length).await?,
        };
        Ok(Response {
            status: head.status,
            head: &self.raw[..head.length],
            body: match body {
                Body::InPlace(range) => &self.raw[range],
                Body::Unchunked => &self.unchunked,
            },
        })
    }

    async fn read_head(&mut self) -> Result<Head> {
        loop {
            self.fill().await?;
            if let Some(head) = parse_head(&self.raw)? {
                return Ok(head);
            }
        }
    }

    async fn read_length(&mut self, start: usize, length: usize) -> Result<Body> {
        let end = start + length;
        self.fill_to(end).await?;
        ensure!(self.raw.len() == end, "bytes after the end of the answer");
        Ok(Body::InPlace(start..end))
    }

    async fn read_chunks(&mut self, mut at: usize) -> Result<Body> {
        self.unchunked.clear();
        loop {
            let (start, length) = self.read_chunk_size(at).await?;
            let end = start + length;
            // Each chunk, the empty last one too, ends in CRLF. None of the
            // servers sends trailers.
            self.fill_to(end + 2).await?;
            if length == 0 {
                return Ok(Body::Unchunked);
            }
            self.unchunked.extend_from_slice(&self.raw[start..end]);
            at = end + 2;
        }
    }

    /// Gives where the chunk's data begins and how long it is.
    async fn read_chunk_size(&mut self, at: usize) -> Result<(usize, usize)> {
        loop {
            match httparse::parse_chunk_size(&self.raw[at..]) {
                Ok(httparse::Status::Complete((used, length))) => {
                    let length = usize::try_from(length).context("chunk size")?;
                    return Ok((at + used, length));
                }
                Ok(httparse::Status::Partial) => self.fill().await?,
                Err(_) => bail!("invalid chunk size"),
            }
        }
    }

    async fn fill_to(&mut self, length: usize) -> Result<()> {
        while self.raw.len() < length {
            self.fill().await?;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        ensure!(self.raw.len() < MAX_ANSWER, "answer over {MAX_ANSWER} bytes");
        let read = self.stream.read_buf(&mut self.raw).await.context("read")?;
        ensure!(read > 0, "connection closed in mid-answer");
        Ok(())
    }
}

fn parse_head(raw: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(raw).context("answer head")? else {
        return Ok(None);
    };
    Ok(Some(Head {
        status: response.code.context("answer without a status")?,
        length,
        framing: framing(response.headers)?,
    }))
}

fn framing(headers: &[httparse::Header<'_>]) -> Result<Framing> {
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).context("Content-Length")?;
            return Ok(Framing::Length(text.parse().context("Content-Length")?));
        }
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(header.value.eq_ignore_ascii_case(b"chunked"), "unknown transfer encoding");
            return Ok(Framing::Chunked);
        }
    }
    // Every server answers 200 with a body here, so neither header is a fault.
    bail!("answer without Content-Length or Transfer-Encoding")
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Serves one connection, in pieces, so that every boundary is met.
    async fn served_in_pieces(answer: &'static [u8], piece: usize) -> Result<Connection> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accept");
            stream.set_nodelay(true).expect("TCP_NODELAY");
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.expect("request");
            for bytes in answer.chunks(piece) {
                stream.write_all(bytes).await.expect("answer");
                tokio::task::yield_now().await;
            }
        });
        Connection::open(addr).await
    }

    #[tokio::test]
    async fn reads_both_framings_whatever_the_pieces() -> Result<()> {
        let plain: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let chunked: &[u8] = b"HTTP/1.1 404 No\r\nContent-Type: text/x\r\n\
            Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        for (answer, status) in [(plain, 200), (chunked, 404)] {
            for piece in [1, 2, 7, 500] {
                let mut connection = served_in_pieces(answer, piece).await?;
                let response = connection.exchange(b"ask!").await?;
                assert_eq!((response.status, response.body), (status, &b"hello"[..]));
            }
        }
        Ok(())
    }

    #[tokio::test]
    async fn an_answer_cut_short_is_an_error() -> Result<()> {
        let cut: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
        let mut connection = served_in_pieces(cut, 500).await?;
        assert!(connection.exchange(b"ask!").await.is_err());
        Ok(())
    }
}
