package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	// What an IP packet may have in a UDP datagram on a link of 1500 bytes.
	mtu  = 1500 - 20 - 8
	port = 443
	// More packets than any window of the grid: none is lost before it is sent.
	queuePackets = 1 << 14
	// Above what any path of the grid holds, so that the congestion window is the limit. gVisor's own bound is 4 MB.
	bufferBytes = 16 << 20
	card        = tcpip.NICID(1)
)

// The server's address in the tunnel. A client's holds the port of its UDP socket, so that no two have the same.
var serverAddress = tcpip.AddrFrom4([4]byte{10, 0, 0, 1})

func clientAddress(udpPort uint16) tcpip.Address {
	return tcpip.AddrFrom4([4]byte{10, 1, byte(udpPort >> 8), byte(udpPort)})
}

// A network is a TCP/IP of gVisor's whose one link is a UDP socket.
type network struct {
	*stack.Stack
	link   *channel.Endpoint
	socket *net.UDPConn
	mutex  sync.Mutex
	// Where packets for an address go; a server learns it from those that come.
	peers map[tcpip.Address]netip.AddrPort
}

func newNetwork(socket *net.UDPConn, own tcpip.Address, congestion string) (*network, error) {
	n := &network{
		Stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		}),
		link:   channel.New(queuePackets, mtu, ""),
		socket: socket,
		peers:  map[tcpip.Address]netip.AddrPort{},
	}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: bufferBytes, Max: bufferBytes}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: bufferBytes, Max: bufferBytes}
	options := []tcpip.SettableTransportProtocolOption{&receive, &send}
	if congestion != "" {
		chosen := tcpip.CongestionControlOption(congestion)
		options = append(options, &chosen)
	}
	for _, option := range options {
		if err := n.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("gVisor refuses %v: %s", option, err)
		}
	}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own.WithPrefix()}
	if err := n.CreateNIC(card, n.link); err != nil {
		return nil, fmt.Errorf("no network card: %s", err)
	}
	if err := n.AddProtocolAddress(card, address, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("no address: %s", err)
	}
	n.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: card}})
	go n.send()
	return n, nil
}

// send takes packets from gVisor to the socket.
func (n *network) send() {
	for {
		packet := n.link.ReadContext(context.Background())
		if packet == nil {
			return
		}
		view := packet.ToView()
		packet.DecRef()
		bytes := view.AsSlice()
		if peer, ok := n.peer(header.IPv4(bytes).DestinationAddress()); ok {
			// What cannot be sent is lost, as on any network.
			if n.socket.RemoteAddr() != nil {
				n.socket.Write(bytes)
			} else {
				n.socket.WriteToUDPAddrPort(bytes, peer)
			}
		}
		view.Release()
	}
}

// receive takes packets from the socket to gVisor until that fails.
func (n *network) receive() error {
	datagram := make([]byte, 1<<16)
	for {
		length, peer, err := n.socket.ReadFromUDPAddrPort(datagram)
		if err != nil {
			return err
		}
		packet := header.IPv4(datagram[:length])
		if !packet.IsValid(length) {
			continue
		}
		n.setPeer(packet.SourceAddress(), peer)
		arrived := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
		n.link.InjectInbound(ipv4.ProtocolNumber, arrived)
		arrived.DecRef()
	}
}

func (n *network) peer(address tcpip.Address) (netip.AddrPort, bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	peer, ok := n.peers[address]
	return peer, ok
}

func (n *network) setPeer(address tcpip.Address, peer netip.AddrPort) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.peers[address] = peer
}
