package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Tool is a program that drains.
type Tool struct {
	Name string
	Path string
}

// Kubectl returns the tool that Haulout is compared with.
func (c *Cluster) Kubectl() Tool { return Tool{Name: "kubectl", Path: c.Programs.Kubectl} }

// Run is the running process of a tool.
type Run struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	started        time.Time
	peak           chan int64
}

// Result is the result of a tool that has ended.
type Result struct {
	Exit           int
	Stdout, Stderr string
	Wall           time.Duration
	User, System   time.Duration
	Switches       int64 // context switches because the process waited
	Faults         int64 // page faults that needed no disk
	MaxRSS         int64 // bytes
}

// Start runs a tool with the world's identity. When the context ends, it is killed.
func (w *World) Start(ctx context.Context, tool Tool, args ...string) (*Run, error) {
	return w.StartWith(ctx, w.Kubeconfig, tool, args...)
}

// StartWith is Start with another kubeconfig.
func (w *World) StartWith(ctx context.Context, kubeconfig string, tool Tool, args ...string) (*Run, error) {
	r := &Run{cmd: w.command(ctx, kubeconfig, tool, args...), started: time.Now()}
	r.cmd.Stdout = &r.stdout
	r.cmd.Stderr = &r.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Cancel = func() error { return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) }
	if err := r.cmd.Start(); err != nil {
		return r, err
	}
	r.peak = watchPeakMemory(r.cmd.Process.Pid)
	return r, nil
}

// command returns a tool's command with a world's identity. Its stdin, stdout and stderr are not connected.
func (w *World) command(ctx context.Context, kubeconfig string, tool Tool, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, tool.Path, args...)
	cmd.Env = []string{"HOME=" + w.Home, "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = w.Home
	return cmd
}

// Signal sends a signal to the tool only, not to its process group.
func (r *Run) Signal(signal os.Signal) error { return r.cmd.Process.Signal(signal) }

// Wait returns when the tool has ended. That the tool failed is a result, not an error.
func (r *Run) Wait() (Result, error) {
	err := r.cmd.Wait()
	result := Result{
		Exit: -1, Stdout: r.stdout.String(), Stderr: r.stderr.String(), Wall: time.Since(r.started),
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result, err
	}
	state := r.cmd.ProcessState
	result.Exit = state.ExitCode()
	result.User, result.System = state.UserTime(), state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		result.Switches, result.Faults = usage.Nvcsw, usage.Minflt
	}
	result.MaxRSS = <-r.peak
	if result.Exit < 0 {
		return result, fmt.Errorf("%s was killed: %v\n%s", r.cmd.Path, state, result.Stderr)
	}
	return result, nil
}

// Run is Start and Wait.
func (w *World) Run(ctx context.Context, tool Tool, args ...string) (Result, error) {
	run, err := w.Start(ctx, tool, args...)
	if err != nil {
		return Result{}, err
	}
	return run.Wait()
}

// Report has those fields of `haulout drain -o json` that these tests read.
type Report struct {
	Kind    string `json:"kind"`
	Node    string `json:"node"`
	Outcome string `json:"outcome"`
	Cordon  struct {
		Before bool   `json:"before"`
		After  bool   `json:"after"`
		Owner  string `json:"owner"`
	} `json:"cordon"`
	Pods       []PodReport    `json:"pods"`
	Volumes    []VolumeReport `json:"volumes"`
	Fits       []FitReport    `json:"fits"`
	Diagnoses  []Diagnosis    `json:"diagnoses"`
	StartedAt  time.Time      `json:"startedAt"`
	FinishedAt time.Time      `json:"finishedAt"`
	Requests   struct {
		Total  int            `json:"total"`
		ByVerb map[string]int `json:"byVerb"`
	} `json:"requests"`
}

// PodReport is a pod in the report and in events.
type PodReport struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Controller string    `json:"controller"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"` // only in events
	Attempts   int       `json:"attempts"`
	EvictedAt  time.Time `json:"evictedAt"`
	VanishedAt time.Time `json:"vanishedAt"`
}

// FitReport says whether a pod fits on another node.
type FitReport struct {
	Pod     string   `json:"pod"`
	Fit     string   `json:"fit"`
	Node    string   `json:"node"`
	Plugins []string `json:"plugins"`
	Message string   `json:"message"`
}

// VolumeReport is a volume in the report and in events.
type VolumeReport struct {
	Volume     string    `json:"volume"`
	Claim      string    `json:"claim"`
	Driver     string    `json:"driver"`
	Attachment string    `json:"attachment"`
	Outcome    string    `json:"outcome"`
	Message    string    `json:"message"`
	UnusedAt   time.Time `json:"unusedAt"`
	DetachedAt time.Time `json:"detachedAt"`
}

// Diagnosis is a diagnosis in the report and in events.
type Diagnosis struct {
	Code    string `json:"code"`
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// DrainEvent has those fields of a line of `haulout drain -o jsonl` that these tests read.
type DrainEvent struct {
	Type      string        `json:"type"`
	At        time.Time     `json:"at"`
	Message   string        `json:"message"`
	Pod       *PodReport    `json:"pod"`
	Volume    *VolumeReport `json:"volume"`
	Diagnosis *Diagnosis    `json:"diagnosis"`
}

// Events decodes stdout, which must contain only events.
func (r Result) Events() (events []DrainEvent, err error) {
	for line := range strings.Lines(r.Stdout) {
		var event DrainEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("not an event: %w\n%s", err, line)
		}
		events = append(events, event)
	}
	return events, nil
}

// Report decodes stdout, which must contain only the report.
func (r Result) Report() (report Report, err error) {
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		return report, fmt.Errorf("stdout is not one JSON object: %w\nstdout: %s\nstderr: %s", err, r.Stdout, r.Stderr)
	}
	return report, nil
}
