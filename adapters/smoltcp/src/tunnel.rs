//! A TCP/IP of smoltcp's whose one link is a UDP socket.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant as Clock;

use cc_adapter::Error;
use rustls::{ConnectionCommon, SideData};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PORT: u16 = 443;
/// What an IP packet may have in a UDP datagram on a link of 1500 bytes.
const MTU: usize = 1500 - 20 - 8;
/// Above what any path of the grid holds, so that the congestion window is the limit.
const BUFFER_BYTES: usize = 8 << 20;
const DATAGRAM_BYTES: usize = 1 << 16;
/// So much of what TLS encrypted waits for room in a socket; the rest is not encrypted yet.
const CHUNK_BYTES: usize = 1 << 16;

/// A client's address in the tunnel holds the port of its UDP socket, so that no two have the same.
pub fn client_address(udp_port: u16) -> Ipv4Addr {
    let [high, low] = udp_port.to_be_bytes();
    Ipv4Addr::new(10, 1, high, low)
}

pub struct Tunnel {
    link: Link,
    interface: Interface,
    pub sockets: SocketSet<'static>,
    start: Clock,
}

impl Tunnel {
    pub fn new(socket: UdpSocket, own: Ipv4Addr, server: Option<SocketAddr>) -> Result<Self, Error> {
        socket.set_nonblocking(true)?;
        let mut link = Link {
            socket,
            peers: server.map(|peer| (SERVER, peer)).into_iter().collect(),
            arrived: None,
        };
        let mut config = Config::new(HardwareAddress::Ip);
        // Only initial sequence numbers and ports come from it.
        config.random_seed = own.to_bits().into();
        let mut interface = Interface::new(config, &mut link, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(own.into(), 8)).expect("room for one");
        });
        Ok(Self { link, interface, sockets: SocketSet::new(vec![]), start: Clock::now() })
    }

    pub fn add(&mut self) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        self.sockets.add(Socket::new(buffer(), buffer()))
    }

    pub fn get(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    pub fn connect(&mut self, handle: SocketHandle, own_port: u16) -> Result<(), Error> {
        let socket = self.sockets.get_mut::<Socket>(handle);
        let done = socket.connect(self.interface.context(), (SERVER, PORT), own_port);
        done.map_err(|error| format!("cannot connect: {error}").into())
    }

    /// Sends what is to be sent and takes what has arrived.
    pub fn turn(&mut self) -> Result<(), Error> {
        while self.link.receive()? {
            self.interface.poll(now(self.start), &mut self.link, &mut self.sockets);
        }
        self.interface.poll(now(self.start), &mut self.link, &mut self.sockets);
        Ok(())
    }

    /// Waits for a packet, or until a timer is due.
    pub fn wait(&mut self) {
        let delay = self.interface.poll_delay(now(self.start), &self.sockets);
        let delay = delay.unwrap_or(Duration::from_secs(1));
        let timeout = libc::timespec {
            tv_sec: delay.secs() as i64,
            tv_nsec: i64::from(delay.micros() as u32) % 1_000_000 * 1000,
        };
        let mut about = libc::pollfd {
            fd: self.link.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: both live until the call is over, and one descriptor is what it is told of.
        unsafe { libc::ppoll(&mut about, 1, &timeout, std::ptr::null()) };
    }
}

fn now(start: Clock) -> Instant {
    Instant::from_micros(start.elapsed().as_micros() as i64)
}

/// Moves what TLS has to say to a socket and what that has received to TLS; false once the other side is gone.
///
/// `take` is called after each part, as TLS holds no more than 16 kB of what it decrypted, and a socket that has waited
/// for a lost packet gives megabytes at once.
pub fn exchange<S: SideData>(
    tls: &mut ConnectionCommon<S>,
    socket: &mut Socket,
    mut take: impl FnMut(&mut ConnectionCommon<S>) -> Result<(), Error>,
) -> Result<bool, Error> {
    while socket.can_recv() {
        let taken = socket.recv(|bytes| {
            let mut rest: &[u8] = bytes;
            let read = tls.read_tls(&mut rest);
            (bytes.len() - rest.len(), read)
        })?;
        taken?;
        tls.process_new_packets()?;
        take(tls)?;
    }
    while tls.wants_write() && socket.can_send() {
        tls.write_tls(&mut Sending(socket))?;
    }
    Ok(matches!(socket.state(), State::SynSent | State::SynReceived | State::Established))
}

/// How much may be given to TLS now, so that it does not hold all of a body twice.
pub fn room<S: SideData>(tls: &ConnectionCommon<S>, socket: &Socket) -> usize {
    if tls.wants_write() || !socket.can_send() { 0 } else { CHUNK_BYTES }
}

struct Sending<'a, 'b>(&'a mut Socket<'b>);

impl Write for Sending<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_slice(bytes).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what TLS has decrypted, nothing where there is nothing yet.
pub fn decrypted<S: SideData>(tls: &mut ConnectionCommon<S>, to: &mut [u8]) -> Result<usize, Error> {
    match tls.reader().read(to) {
        Ok(length) => Ok(length),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error.into()),
    }
}

struct Link {
    socket: UdpSocket,
    /// Where packets for an address go; a server learns it from those that come.
    peers: HashMap<Ipv4Addr, SocketAddr>,
    arrived: Option<Vec<u8>>,
}

impl Link {
    /// Takes the next packet from the socket; false where there is none.
    fn receive(&mut self) -> io::Result<bool> {
        let mut datagram = vec![0; DATAGRAM_BYTES];
        match self.socket.recv_from(&mut datagram) {
            Ok((length, peer)) => {
                datagram.truncate(length);
                if let Some(source) = address_at(&datagram, 12) {
                    self.peers.insert(source, peer);
                    self.arrived = Some(datagram);
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The address in an IP packet's head: 12 the source, 16 the destination.
fn address_at(packet: &[u8], at: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(bytes.into())
}

impl Device for Link {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Outgoing<'_>)> {
        let packet = self.arrived.take()?;
        Some((Arrived(packet), Outgoing(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities.checksum = ChecksumCapabilities::default();
        capabilities
    }
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

struct Outgoing<'a>(&'a Link);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut packet = vec![0; length];
        let result = fill(&mut packet);
        let Outgoing(link) = self;
        // What cannot be sent is lost, as on any network.
        if link.socket.peer_addr().is_ok() {
            let _ = link.socket.send(&packet);
        } else if let Some(peer) = address_at(&packet, 16).and_then(|to| link.peers.get(&to)) {
            let _ = link.socket.send_to(&packet, peer);
        }
        result
    }
}
