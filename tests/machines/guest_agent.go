package machines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// guestAgent is a client of qemu-guest-agent, a service in a machine under QEMU that runs commands. Each request uses a
// new connection, because the machine may have rebooted since the last one.
type guestAgent struct {
	socket string

	mu     sync.Mutex // QEMU serves one connection at a time
	synced int64
}

// How long the guest agent may take for an answer. The limit is long when the agent is known to run, because the host may
// do other work. It is short for a ping: while the machine boots, a request may get lost and is repeated.
const (
	agentPatience = 5 * time.Minute
	pingPatience  = 5 * time.Second
)

// ping fails if the guest agent does not run.
func (a *guestAgent) ping() error {
	var nothing struct{}
	return a.ask(pingPatience, "guest-ping", struct{}{}, &nothing)
}

// run runs a command, waits until it has ended, and returns what it has written. It fails if the guest agent does not
// answer within agentPatience.
func (a *guestAgent) run(ctx context.Context, input []byte, words ...string) (string, error) {
	type object = map[string]any
	arguments := object{
		"path": words[0], "arg": words[1:], "capture-output": true,
		"env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb",
			"LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"},
	}
	if input != nil {
		arguments["input-data"] = base64.StdEncoding.EncodeToString(input)
	}
	var begun struct{ PID int }
	if err := a.ask(agentPatience, "guest-exec", arguments, &begun); err != nil {
		return "", err
	}
	for {
		var status struct {
			Exited   bool
			ExitCode int    `json:"exitcode"`
			Signal   int    `json:"signal"`
			Out      string `json:"out-data"`
			Err      string `json:"err-data"`
		}
		if err := a.ask(agentPatience, "guest-exec-status", object{"pid": begun.PID}, &status); err != nil {
			return "", err
		}
		if status.Exited {
			var output bytes.Buffer
			for _, part := range []string{status.Out, status.Err} {
				text, err := base64.StdEncoding.DecodeString(part)
				if err != nil {
					return "", err
				}
				output.Write(text)
			}
			if status.ExitCode != 0 || status.Signal != 0 {
				return output.String(), fmt.Errorf("%s: exit code %d, signal %d\n%s", strings.Join(words, " "),
					status.ExitCode, status.Signal, output.String())
			}
			return output.String(), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s: %w", strings.Join(words, " "), ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ask sends one request and reads its result, both within `patience`.
func (a *guestAgent) ask(patience time.Duration, command string, arguments, result any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	connection, err := net.Dial("unix", a.socket)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	lines := bufio.NewReader(connection)
	// The answer to guest-sync-delimited begins with the byte 0xff. Everything before it answers requests of former
	// connections and is skipped.
	a.synced++
	if err := send(connection, "guest-sync-delimited", map[string]any{"id": a.synced}); err != nil {
		return err
	}
	for answered := int64(0); answered != a.synced; {
		if _, err := lines.ReadString(0xff); err != nil {
			return fmt.Errorf("the guest agent does not answer: %w", err)
		}
		if err := receive(lines, &answered); err != nil {
			return err
		}
	}
	if err := send(connection, command, arguments); err != nil {
		return err
	}
	return receive(lines, result)
}

func send(connection net.Conn, command string, arguments any) error {
	text, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return err
	}
	_, err = connection.Write(append(text, '\n'))
	return err
}

func receive(lines *bufio.Reader, result any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the guest agent does not answer: %w", err)
	}
	var answer struct {
		Return json.RawMessage
		Error  *struct{ Class, Desc string }
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("the guest agent answers %q: %w", line, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("the guest agent: %s: %s", answer.Error.Class, answer.Error.Desc)
	}
	return json.Unmarshal(answer.Return, result)
}
