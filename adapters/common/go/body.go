package adapter

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Folder answers requests with the files of CC_WWW, and reads each of them once.
type Folder struct {
	mutex  sync.Mutex
	bodies map[string][]byte
}

// Body is the content of the file that a path names.
func (f *Folder) Body(path string) ([]byte, error) {
	name := strings.TrimPrefix(path, "/")
	if name != filepath.Base(name) || name == ".." {
		return nil, os.ErrNotExist
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if body, ok := f.bodies[name]; ok {
		return body, nil
	}
	body, err := os.ReadFile(filepath.Join(os.Getenv("CC_WWW"), name))
	if err == nil {
		if f.bodies == nil {
			f.bodies = map[string][]byte{}
		}
		f.bodies[name] = body
	}
	return body, err
}

// ServeHTTP writes a body in one piece: what keeps no buffer for sending would wait at the end of each.
func (f *Folder) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := f.Body(request.URL.Path)
	if err != nil {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Length", strconv.Itoa(len(body)))
	response.Header().Set("Content-Type", "application/octet-stream")
	response.Write(body)
}

// Fetch gets the one body over a transport, discards it and prints what it took since `start`. `handshake` holds how
// long the handshake took by the time that there is a body.
func Fetch(transport http.RoundTripper, start time.Time, handshake *time.Duration) error {
	size := os.Getenv("CC_BYTES")
	client := http.Client{Transport: transport}
	response, err := client.Get("https://" + os.Getenv("CC_HOSTNAME") + ":" + os.Getenv("CC_PORT") + "/" + size)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	received, err := io.Copy(io.Discard, response.Body)
	took := time.Since(start)
	if err != nil || fmt.Sprint(received) != size {
		return fmt.Errorf("the connection ended after %d of %s bytes: %v", received, size, err)
	}
	report := map[string]any{"bytes": received, "completion_s": took.Seconds(), "handshake_s": handshake.Seconds()}
	return json.NewEncoder(os.Stdout).Encode(report)
}
