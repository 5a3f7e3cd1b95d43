//! Machines in network namespaces, whose link to the servers on this one can be cut. Needs root and iproute2.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    thread,
};

/// A network of its own, connected to this machine by one link.
pub(crate) struct Namespace {
    pub(crate) name: String,
    number: u8,
}

impl Namespace {
    /// Returns a namespace with this number; `None` if this machine does not allow it.
    pub(crate) fn new(number: u8) -> Option<Self> {
        let namespace = Self { name: format!("memoird-test-{number}"), number };
        let (name, link) = (&namespace.name[..], &namespace.link()[..]);
        drop(ip(&format!("netns del {name}")));
        ip(&format!("netns add {name}")).ok()?;
        for line in [
            format!("link add {link} type veth peer name eth0 netns {name}"),
            format!("addr add {} dev {link}", namespace.address(1) + "/30"),
            format!("link set {link} up"),
            format!("-n {name} addr add {} dev eth0", namespace.address(2) + "/30"),
            format!("-n {name} link set eth0 up"),
            format!("-n {name} link set lo up"),
        ] {
            ip(&line).ok()?;
        }
        Some(namespace)
    }

    /// Cuts the link, so that every packet is lost, or mends it.
    pub(crate) fn set_cut(&self, is_cut: bool) {
        ip(&format!("link set {} {}", self.link(), if is_cut { "down" } else { "up" })).unwrap();
    }

    /// Returns the address of this machine as the namespace sees it.
    pub(crate) fn host(&self) -> String {
        self.address(1)
    }

    fn link(&self) -> String {
        format!("memoird{}", self.number)
    }

    fn address(&self, end: u8) -> String {
        format!("10.231.{}.{end}", self.number)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(ip(&format!("netns del {}", self.name)));
    }
}

fn ip(arguments: &str) -> io::Result<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    let failed = || io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
    output.status.success().then_some(()).ok_or_else(failed)
}

/// Makes a port of this machine's loopback reachable from its namespaces, until the process ends. Returns the port.
pub(crate) fn forward(port: u16) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let target = SocketAddr::from(([127, 0, 0, 1], port));
            let Ok(server) = TcpStream::connect(target) else { continue };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || copy(from, to));
            thread::spawn(move || copy(server, client));
        }
    });
    address.port()
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    drop(io::copy(&mut from, &mut to));
    drop(to.shutdown(Shutdown::Write));
}
