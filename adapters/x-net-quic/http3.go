package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"

	"github.com/quic-go/qpack"
)

// As much of HTTP/3 (RFC 9114) as a GET and its answer need. QPACK's dynamic table is never used, as neither side's
// settings allow one.

const (
	dataFrame    = 0x00
	headersFrame = 0x01
	// longestRequestBytes bounds what is read of one request.
	longestRequestBytes = 64 << 10
)

// control is how the server's control stream begins: its type, and a SETTINGS frame in which all is as by default.
var control = []byte{0x00, 0x04, 0x00}

// readPath reads all of a request's stream and returns the path that its GET asks for.
func readPath(stream io.Reader) (string, error) {
	content, err := io.ReadAll(io.LimitReader(stream, longestRequestBytes))
	if err != nil {
		return "", err
	}
	for rest := content; len(rest) > 0; {
		kind, afterKind, ok := takeNumber(rest)
		length, frame, isWhole := takeNumber(afterKind)
		if !ok || !isWhole || length > uint64(len(frame)) {
			break
		}
		if kind == headersFrame {
			return pathOf(frame[:length])
		}
		rest = frame[length:]
	}
	return "", errors.New("a request without headers")
}

func pathOf(block []byte) (string, error) {
	method, path := "", ""
	next := qpack.NewDecoder().Decode(block)
	for {
		field, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		switch field.Name {
		case ":method":
			method = field.Value
		case ":path":
			path = field.Value
		}
	}
	if method != "GET" || path == "" {
		return "", errors.New("a request other than GET")
	}
	return path, nil
}

// found is what precedes a body: its headers, and the head of the one DATA frame that is the rest of the stream.
func found(bodyBytes int) []byte {
	head := headers(
		qpack.HeaderField{Name: ":status", Value: "200"},
		qpack.HeaderField{Name: "content-length", Value: strconv.Itoa(bodyBytes)},
	)
	return appendNumber(append(head, dataFrame), uint64(bodyBytes))
}

func notFound() []byte {
	return headers(qpack.HeaderField{Name: ":status", Value: "404"})
}

func headers(fields ...qpack.HeaderField) []byte {
	var block bytes.Buffer
	encoder := qpack.NewEncoder(&block)
	for _, field := range fields {
		encoder.WriteField(field) // a bytes.Buffer refuses nothing
	}
	return append(appendNumber([]byte{headersFrame}, uint64(block.Len())), block.Bytes()...)
}

// appendNumber writes a number of QUIC's in its longest form; its first two bits say that it has 8 bytes.
func appendNumber(to []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(to, number|3<<62)
}

// takeNumber reads a number of QUIC's: the first two bits say in how many bytes (1, 2, 4, 8).
func takeNumber(from []byte) (number uint64, rest []byte, ok bool) {
	if len(from) == 0 || len(from) < 1<<(from[0]>>6) {
		return 0, nil, false
	}
	length := 1 << (from[0] >> 6)
	number = uint64(from[0] & 0x3f)
	for _, value := range from[1:length] {
		number = number<<8 | uint64(value)
	}
	return number, from[length:], true
}
