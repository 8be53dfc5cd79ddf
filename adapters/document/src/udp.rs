//! A UDP socket with few system calls: one to wait, one to take what is there, one to send a quantum.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

const DATAGRAM: usize = 2048;

pub struct Udp {
    socket: UdpSocket,
    buffer: [u8; DATAGRAM],
}

impl Udp {
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        Ok(Self {
            socket,
            buffer: [0; DATAGRAM],
        })
    }

    /// Waits until a datagram is there, or for so long. Says whether one is there.
    pub fn wait(&self, at_most: Option<Duration>) -> bool {
        let mut poll = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time = at_most.map(|time| libc::timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const _);
        (unsafe { libc::ppoll(&mut poll, 1, time, std::ptr::null()) }) > 0
    }

    /// Hands over the datagram that is there. One call each: nearly always there is one, and `wait` tells of more.
    pub fn receive(&mut self, each: impl FnOnce(SocketAddr, &[u8])) {
        unsafe {
            let mut name: libc::sockaddr_in = zeroed();
            let mut size = size_of::<libc::sockaddr_in>() as u32;
            let (at, room) = (self.buffer.as_mut_ptr().cast(), DATAGRAM);
            let from = (&mut name as *mut libc::sockaddr_in).cast();
            let got = libc::recvfrom(self.socket.as_raw_fd(), at, room, libc::MSG_DONTWAIT, from, &mut size);
            if got >= 0 {
                let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
                let from = SocketAddrV4::new(ip, u16::from_be(name.sin_port));
                each(from.into(), &self.buffer[..got as usize]);
            }
        }
    }

    /// Sends datagrams of `segment` bytes each (the last may be shorter) with one call.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], segment: Option<usize>, ecn: i32) {
        let SocketAddr::V4(to) = to else { return };
        unsafe {
            let mut name: libc::sockaddr_in = zeroed();
            name.sin_family = libc::AF_INET as u16;
            name.sin_port = to.port().to_be();
            name.sin_addr.s_addr = u32::from(*to.ip()).to_be();
            let mut part = libc::iovec {
                iov_base: bytes.as_ptr() as *mut _,
                iov_len: bytes.len(),
            };
            let mut control = [0u64; 8];
            let mut header: libc::msghdr = zeroed();
            header.msg_name = (&mut name as *mut libc::sockaddr_in).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control);
            let mut used = 0;
            let mut at = libc::CMSG_FIRSTHDR(&header);
            if ecn != 0 {
                (*at).cmsg_level = libc::IPPROTO_IP;
                (*at).cmsg_type = libc::IP_TOS;
                (*at).cmsg_len = libc::CMSG_LEN(4) as usize;
                libc::CMSG_DATA(at).cast::<i32>().write_unaligned(ecn);
                used += libc::CMSG_SPACE(4) as usize;
                at = libc::CMSG_NXTHDR(&header, at);
            }
            if let Some(segment) = segment {
                (*at).cmsg_level = libc::SOL_UDP;
                (*at).cmsg_type = libc::UDP_SEGMENT;
                (*at).cmsg_len = libc::CMSG_LEN(2) as usize;
                libc::CMSG_DATA(at).cast::<u16>().write_unaligned(segment as u16);
                used += libc::CMSG_SPACE(2) as usize;
            }
            header.msg_controllen = used;
            libc::sendmsg(self.socket.as_raw_fd(), &header, 0);
        }
    }
}
