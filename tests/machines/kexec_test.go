package machines

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Its budget always allows an eviction.
var aboveKexec = Work{App: "web", Replicas: 4, Promised: 3, Lingers: time.Second, Grace: 30}

// A word on the command line of the kernel that the test loads. GRUB does not know it, so it shows that kexec has started
// the running kernel.
const onlyByKexec = "loaded-by=kexec"

// With `reboot-method: [kexec, systemd]` the agent reboots the machine twice, through the real logind. For the first
// reboot a kernel is loaded, by the program that docs/tasks.md shows: it starts, without firmware and GRUB. For the second
// one no kernel is loaded: the machine reboots in the ordinary way, and the Node says why.
func TestKexec(t *testing.T) {
	f, q := virtualFleet(t, "reboot-method: [kexec, systemd]\n", aboveKexec)
	ctx, kernel := t.Context(), q.kernel(t)
	if words := q.commandLine(t); slices.Contains(words, onlyByKexec) || !startedByGRUB(words) {
		t.Fatalf("the first boot has the command line %q", words)
	}
	f.loadKernel(t, q, kernel)
	const loaded, notLoaded = "kexec into the loaded kernel",
		`logind instead of kexec, because no kernel is loaded: /sys/kernel/kexec_loaded contains "0"`
	f.checkPermitted(t, q, loaded)

	resets := f.reboot(t, q, "by kexec", loaded)
	if words := q.commandLine(t); !slices.Contains(words, onlyByKexec) || startedByGRUB(words) {
		t.Errorf("the kernel that runs after the kexec has the command line %q", words)
	}
	if resets != 0 {
		t.Errorf("the machine has reset itself %d times, which starts the firmware", resets)
	}
	if running := q.kernel(t); running != kernel {
		t.Errorf("kernel %s runs, %s was loaded", running, kernel)
	}
	must(t, f.UntilWhole(ctx, aboveKexec))
	f.checkUpdates(t, q.Name, 1)

	f.checkPermitted(t, q, notLoaded)
	resets = f.reboot(t, q, "with no kernel loaded", notLoaded)
	if words := q.commandLine(t); slices.Contains(words, onlyByKexec) || !startedByGRUB(words) {
		t.Errorf("the kernel that runs after the ordinary reboot has the command line %q", words)
	}
	if resets == 0 {
		t.Error("the machine has not reset itself, so the firmware has not started")
	}
	f.checkUpdates(t, q.Name, 2)
	f.checkPromises(t, aboveKexec)
	f.checkNoSlots(t)
	f.Line.Note(q.Name, "states: %s", strings.Join(f.Witness.States(q.Name), " "))
	f.spent(q, "the end")
}

// reboot makes the machine need a reboot, and returns when the agent has rebooted it and it is back in service. The
// message of the Node must say that it is to be rebooted by `method`. Returns how often the machine has reset itself.
func (f *Fleet) reboot(t *testing.T, q *Virtual, how, method string) int {
	t.Helper()
	ctx, boot := t.Context(), q.bootID(t)
	resets, messages := q.Resets(), len(f.Witness.Messages(q.Name))
	_, err := q.Run(ctx, "touch", "/run/reboot-required")
	must(t, err)
	f.Line.Note(q.Name, "/run/reboot-required")
	now, err := f.untilBackInService(ctx, updateOfQEMU, q.Name, boot, q.BootID)
	must(t, err)
	resets = q.Resets() - resets
	f.spent(q, "back in service, "+how)
	f.Line.Note(q.Name, "boot %s, %d resets, command line: %s", now, resets, strings.Join(q.commandLine(t), " "))
	told := f.Witness.Messages(q.Name)[messages:]
	if !slices.Contains(told, "requesting the reboot ("+method+")") {
		t.Errorf("%s: the Node has shown %q", how, told)
	}
	return resets
}

// loadKernel loads an installed kernel as the maintainer scripts of Debian's kernel packages would, by the program for
// /etc/kernel/postinst.d that docs/tasks.md shows. The command line has one word more than that of the running kernel.
func (f *Fleet) loadKernel(t *testing.T, q *Virtual, release string) {
	t.Helper()
	ctx := t.Context()
	document, err := os.ReadFile(filepath.Join(needs.Root, "docs", "tasks.md"))
	must(t, err)
	command := regexp.MustCompile(`(?m)^ +(exec kexec .*)$`).FindSubmatch(document)
	if command == nil {
		t.Fatal("docs/tasks.md has no program that loads a kernel")
	}
	const programs, name = "/etc/kernel/postinst.d", "zz-load-kernel"
	program := fmt.Sprintf("#!/bin/sh\n%s --append=%s\n", command[1], onlyByKexec)
	must(t, q.Write(ctx, map[string][]byte{programs + "/" + name: []byte(program)}))
	_, err = q.Run(ctx, "run-parts", "--exit-on-error", "--regex=^"+name+"$", "--arg="+release,
		"--arg=/boot/vmlinuz-"+release, programs)
	must(t, err)
	if loaded, err := q.Run(ctx, "cat", "/sys/kernel/kexec_loaded"); err != nil || strings.TrimSpace(loaded) != "1" {
		t.Fatalf("/sys/kernel/kexec_loaded contains %q (%v)", loaded, err)
	}
	f.Line.Note(q.Name, "kernel %s is loaded: %s", release, strings.ReplaceAll(program, "\n", "; "))
}

// checkPermitted checks that the check of the configuration says that the machine would be rebooted by `method`.
func (f *Fleet) checkPermitted(t *testing.T, q *Virtual, method string) {
	t.Helper()
	text, err := q.Run(t.Context(), "haulout-as-service", "--check")
	f.keep(t, "haulout-as-service --check", text, err)
	if !strings.Contains(text, "permitted by "+method+";") {
		t.Errorf("--check does not say that the reboot is permitted by %s:\n%s", method, text)
	}
}

func (v *Virtual) commandLine(t *testing.T) []string {
	t.Helper()
	words, err := v.CommandLine(t.Context())
	must(t, err)
	return words
}

// startedByGRUB returns true for the command line of a kernel that GRUB has started. GRUB says which file it has loaded,
// and `kexec --reuse-cmdline` leaves that out.
func startedByGRUB(commandLine []string) bool {
	return slices.ContainsFunc(commandLine, func(word string) bool { return strings.HasPrefix(word, "BOOT_IMAGE=") })
}
