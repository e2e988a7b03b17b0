package machines

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Installation is what the log of a machine's dpkg has shown. Here a package counts as half-installed while dpkg changes
// it: in dpkg's states half-installed, unpacked, half-configured, triggers-awaited and triggers-pending.
type Installation struct {
	Half    time.Duration // time with at least one half-installed package
	Exposed time.Duration // the part of Half in which pods were on the machine
	Most    int           // the largest number of pods on the machine during Exposed

	packages map[string]bool // the packages that are half-installed now
	at       time.Time       // Half and Exposed include the time until then
}

// until adds the time from `at` to now, during which so many pods were on the machine and no package changed its state.
func (i *Installation) until(now time.Time, pods int) {
	if len(i.packages) > 0 {
		i.Half += now.Sub(i.at)
		if pods > 0 {
			i.Exposed += now.Sub(i.at)
			i.Most = max(i.Most, pods)
		}
	}
	i.at = now
}

// line takes into account a line of /var/log/dpkg.log. It returns the package and its new state as text, or an empty
// string if the line is not about a package's state.
//
//	2026-11-26 03:04:05 status half-configured openssl:amd64 3.0.16-1
func (i *Installation) line(text string) string {
	fields := strings.Fields(text)
	if len(fields) < 5 || fields[2] != "status" {
		return ""
	}
	switch state, name := fields[3], fields[4]; state {
	case "installed", "config-files", "not-installed":
		delete(i.packages, name)
	default:
		i.packages[name] = true
	}
	return strings.Join(fields[3:], " ")
}

// WatchInstallations follows the log of dpkg on all machines, in which dpkg writes each change of a package's state. From
// now on the witness counts how long packages are half-installed.
func (f *Fleet) WatchInstallations() error {
	for _, machine := range f.Machines {
		log, err := os.Open(filepath.Join(machine.Disk, "var/log/dpkg.log"))
		if err != nil {
			return err
		}
		if _, err := log.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		f.Witness.installs(machine.Name)
		go f.follow(f.watching, machine.Name, log, f.Witness.seeDpkg)
	}
	return nil
}

// logLook is the time between two reads of the log. Lines are read late by that much, but none is missed.
const logLook = 10 * time.Millisecond

func (f *Fleet) follow(ctx context.Context, name string, log *os.File, see func(name, line string)) {
	defer log.Close()
	rest, buffer := "", make([]byte, 1<<16)
	for ctx.Err() == nil {
		read, err := log.Read(buffer)
		rest += string(buffer[:read])
		for {
			line, more, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			rest = more
			see(name, line)
		}
		if err != nil && err != io.EOF {
			f.Witness.Violate("%s on %s cannot be read: %v", log.Name(), name, err)
			return
		}
		if read == 0 {
			<-time.After(logLook)
		}
	}
}

// Installation returns what was counted for a machine until now.
func (w *Witness) Installation(name string) Installation {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	return *w.installations[name]
}

// installs starts the count for a machine.
func (w *Witness) installs(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.installations[name] = &Installation{packages: map[string]bool{}, at: time.Now()}
}

// CountAnew sets the counted times and pods of all machines to zero.
func (w *Witness) CountAnew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	for _, seen := range w.installations {
		seen.Half, seen.Exposed, seen.Most = 0, 0, 0
	}
}

// ForbidHalf makes it a violation from now on if a pod is on a machine with a half-installed package.
func (w *Witness) ForbidHalf() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halfForbidden = true
}

// count adds the time until now for each machine. The caller holds the mutex, and calls it before it changes which pods
// or half-installed packages are on a machine.
func (w *Witness) count() {
	for name, seen := range w.installations {
		seen.until(time.Now(), len(w.podsOn(name)))
	}
}

func (w *Witness) seeDpkg(name, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	if change := w.installations[name].line(line); change != "" {
		w.line.Note(name, "dpkg: %s (%d pods)", change, len(w.podsOn(name)))
	}
	w.judgeInstallation(name)
}

func (w *Witness) judgeInstallation(name string) {
	seen, pods := w.installations[name], len(w.podsOn(name))
	if seen != nil && w.halfForbidden && len(seen.packages) > 0 && pods > 0 {
		w.violate("%s has %d packages that are half-installed, and %d pods", name, len(seen.packages), pods)
	}
}
