//! Certificates of an authority that nobody knows, and Tribune behind nginx with one of them.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::nginx::{Nginx, replace_once, shipped_site};
use crate::support::{TestServer, free_port, installed, sample, wait_for};

/// A certificate of an authority that nobody knows.
pub struct Certified {
    /// The authority's own certificate, a file.
    pub authority: String,
    dir: PathBuf,
}

impl Certified {
    /// For a name or an address, with its files in `dir`.
    pub fn new(name: &str, dir: &Path) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "Test authority");
        let authority_key = KeyPair::generate().expect("a key");
        let root = authority.self_signed(&authority_key).expect("an authority");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new([name.to_owned()]).expect("a name");
        let server = server.signed_by(&key, &issuer).expect("a certificate");
        for (file, text) in
            [("authority.pem", root.pem()), ("server.pem", server.pem()), ("server.key", key.serialize_pem())]
        {
            fs::write(dir.join(file), text).expect("a file");
        }
        Self { authority: dir.join("authority.pem").display().to_string(), dir: dir.to_owned() }
    }

    /// The lines of a site that has the certificate.
    pub fn nginx(&self) -> String {
        let dir = self.dir.display();
        format!("ssl_certificate {dir}/server.pem; ssl_certificate_key {dir}/server.key;")
    }
}

/// Tribune with its own issuer behind the site that is shipped, over HTTPS.
pub struct Secured {
    pub tribune: TestServer,
    pub certified: Certified,
    pub public: String,
    origin: String,
    _nginx: Nginx,
}

impl Secured {
    pub fn start(path: &str) -> Self {
        let port = free_port();
        let origin = format!("https://127.0.0.2:{port}");
        let public = format!("{origin}{path}");
        let tribune = TestServer::builder()
            .documents(&sample())
            .server(&format!("public_url = \"{public}\""))
            .tables("[store]\n[auth]\nissuer = \"builtin\"\nrequired = true")
            .arg("--listen")
            .arg(&format!("127.0.0.1:{port}"))
            .start();
        let certified = Certified::new("127.0.0.2", tribune.dir.path());
        let nginx = Nginx::start(tribune.dir.path(), &secured_site(port, path, &certified));
        wait_for("nginx to listen", || TcpStream::connect(("127.0.0.2", port)).is_ok());
        Self { tribune, certified, public, origin, _nginx: nginx }
    }

    /// What is at a path of the public name.
    pub fn get(&self, path: &str) -> String {
        let script = "import sys, urllib.request as web; web.install_opener(web.build_opener(web.ProxyHandler({}))); \
             print(web.urlopen(sys.argv[1]).read().decode())";
        let mut python = Command::new(installed("py-mcp2/bin/python"));
        python.env("SSL_CERT_FILE", &self.certified.authority);
        let answer = python.args(["-c", script, &format!("{}{path}", self.origin)]).output().expect("Python runs");
        assert!(answer.status.success(), "{path}: {answer:?}");
        String::from_utf8(answer.stdout).expect("UTF-8")
    }
}

/// The site that is shipped, as its comment about certificates says; perhaps below a path.
fn secured_site(port: u16, path: &str, certified: &Certified) -> String {
    let listen = format!("listen 127.0.0.2:{port} ssl;\n    {}", certified.nginx());
    let site = replace_once(&shipped_site(port), &format!("listen 127.0.0.2:{port};"), &listen);
    if path.is_empty() {
        return site;
    }
    // Its metadata is at the root too, with the path at the end.
    let below = format!(
        "location /.well-known/ {{\n        proxy_pass http://tribune;\n    }}\n\n    location {path}/ {{\n        \
         proxy_buffering off;\n        gzip off;\n        proxy_pass http://tribune/;"
    );
    replace_once(&site, "location / {\n        proxy_pass http://tribune;", &below)
}
