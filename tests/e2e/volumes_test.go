package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The driver's message about a failure.
const arrayIsBusy = "rpc error: code = Internal desc = the array is busy: LUN 7"

// The volumes of a node, on a real API server: the attach-detach controller of kube-controller-manager creates and
// deletes the VolumeAttachments, and the tests' own driver attaches and detaches slowly, and fails at first.
func TestVolumes(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	t.Run("WaitedFor", volumesWaitedFor)
	t.Run("WhatTheDriverSaysIsToldAtOnce", volumesTold)
	t.Run("NotWaitedForUnasked", volumesNotWaitedFor)
	t.Run("StuckEndsTheDrain", volumesStuck)
	t.Run("LeftBehindIsWaitedForByTheNext", volumesLeftBehind)
}

// diskWorld returns a world whose node "old" has two databases with a disk each, and two web servers that share one
// disk.
func diskWorld(t *testing.T, db0, db1, shared Disk, more ...PodOption) (*World, *Disks) {
	t.Helper()
	w := newWorld(t)
	d, err := w.StartDisks()
	must(t, err)
	t.Cleanup(d.Close)
	db0.Claim, db0.Mode = "data-db-0", corev1.ReadWriteOnce
	db1.Claim, db1.Mode = "data-db-1", corev1.ReadWriteOnce
	shared.Claim, shared.Mode = "shared", corev1.ReadWriteMany
	for _, disk := range []Disk{db0, db1, shared, {Claim: "logs", Mode: corev1.ReadWriteMany}} {
		must(t, d.Add(t.Context(), disk))
	}
	must(t, d.AddNode(t.Context(), "old"))
	must(t, w.Apply(t.Context(), WithClaims("data", StatefulSet("db", 2, Annotate(TerminatesAfter, "100ms"))),
		Deployment("web", 2, append(more, Claim("shared"))...)))
	must(t, w.Settle(t.Context(), 4))
	return w, d
}

func expectAttached(t *testing.T, d *Disks, short string, claims ...string) {
	t.Helper()
	got, err := d.On(t.Context(), short)
	must(t, err)
	want := []string{}
	for _, claim := range claims {
		want = append(want, d.Volume(claim))
	}
	if !slices.Equal(got, want) {
		t.Errorf("attached to node %s: %v, want %v", short, got, want)
	}
}

// settledElsewhere waits until every pod runs, and checks that these volumes are attached to the node "new".
func settledElsewhere(t *testing.T, w *World, d *Disks, pods int, claims ...string) {
	t.Helper()
	must(t, w.Settle(t.Context(), pods))
	expectAttached(t, d, "new", claims...)
}

// expectOnlyLooks checks P1: a drain only reads objects about volumes; the controllers change them. It returns the
// number of these requests.
func expectOnlyLooks(t *testing.T, w *World) (looks int) {
	t.Helper()
	requests, err := w.Requests()
	must(t, err)
	kinds := map[string]int{}
	for _, request := range requests {
		if !slices.Contains([]string{"volumeattachments", "persistentvolumes", "persistentvolumeclaims"},
			request.ObjectRef.Resource) {
			continue
		}
		kinds[request.Kind()]++
		looks++
		if !slices.Contains([]string{"get", "list", "watch"}, request.Verb) {
			t.Errorf("%s %s", request.Verb, request.RequestURI)
		}
	}
	t.Logf("%d requests, about volumes: %v", len(requests), kinds)
	return looks
}

// The drain ends when the last VolumeAttachment is deleted, not earlier, and reports when that was.
func volumesWaitedFor(t *testing.T) {
	t.Parallel()
	disk := Disk{DetachesAfter: 500 * time.Millisecond, FailsOnce: arrayIsBusy}
	w, d := diskWorld(t, disk, disk, disk)
	must(t, w.Apply(t.Context(), DaemonSet("net")))
	must(t, w.Settle(t.Context(), 5))
	expectAttached(t, d, "old", "data-db-0", "data-db-1", "shared")
	must(t, d.AddNode(t.Context(), "new"))

	result := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "--wait-volumes", "--ignore-daemonsets",
		"-o", "json")
	expectAttached(t, d, "old")
	report, err := result.Report()
	must(t, err)
	if report.Outcome != "drained" || len(report.Volumes) != 3 || len(report.Diagnoses) != 0 {
		t.Errorf("the report says %s, volumes %+v, diagnoses %+v", report.Outcome, report.Volumes, report.Diagnoses)
	}
	attachments := d.Attachments("old")
	if len(report.Volumes) != len(attachments) {
		t.Fatalf("the report has %d volumes, there were %d", len(report.Volumes), len(attachments))
	}
	for i, volume := range report.Volumes {
		was := attachments[i]
		claim := w.Name + "/" + strings.TrimPrefix(was.Volume, w.Name+"-")
		if volume.Volume != was.Volume || volume.Attachment != was.Name || volume.Driver != d.Driver ||
			volume.Claim != claim || volume.Outcome != "detached" || volume.Message != "" {
			t.Errorf("the report has %+v, want %s detached", volume, was.Volume)
		}
		inOrder := []time.Time{was.Asked, was.Failed, was.Released, volume.DetachedAt, report.FinishedAt}
		if !slices.IsSortedFunc(inOrder, time.Time.Compare) || was.Failed.IsZero() {
			t.Errorf("%s: asked to detach, failed, released, reported as detached, drained: %v", was.Volume, inOrder)
		}
		if volume.UnusedAt.IsZero() || volume.UnusedAt.After(volume.DetachedAt) {
			t.Errorf("%s: unused at %v, detached at %v", was.Volume, volume.UnusedAt, volume.DetachedAt)
		}
		t.Logf("%s: %d ms from its last pod's end to its detaching, told after %d ms", was.Volume,
			was.Released.Sub(volume.UnusedAt).Milliseconds(), volume.DetachedAt.Sub(was.Released).Milliseconds())
	}
	t.Logf("drained after %.1f s, the last of it %d ms", result.Wall.Seconds(),
		report.FinishedAt.Sub(lastReleased(attachments)).Milliseconds())
	compare(t, outcome{done: true, left: "net=1", evicted: "db=2 web=2", cordoned: "old"}, observe(t, w, result))
	// VolumeAttachments: one list, one watch, and one list at the end. PersistentVolumes: one read of each.
	if looks := expectOnlyLooks(t, w); looks > 3+len(attachments) {
		t.Errorf("%d requests about %d volumes", looks, len(attachments))
	}
	settledElsewhere(t, w, d, 6, "data-db-0", "data-db-1", "shared")
	expectController(t, w, d)
}

func lastReleased(attachments []Attachment) (last time.Time) {
	for _, attachment := range attachments {
		if attachment.Released.After(last) {
			last = attachment.Released
		}
	}
	return last
}

// expectController checks that only kube-controller-manager has created and deleted the VolumeAttachments of the world.
func expectController(t *testing.T, w *World, d *Disks) {
	t.Helper()
	const controller = "system:serviceaccount:kube-system:attachdetach-controller"
	names := map[string]bool{}
	for _, attachment := range d.Attachments("old") {
		names[attachment.Name] = true
	}
	for _, verb := range []string{"create", "delete"} {
		requests, err := w.Audit.Select(func(e AuditEvent) bool {
			return e.Is("volumeattachments") && e.Verb == verb && names[e.ObjectRef.Name]
		})
		must(t, err)
		done := map[string]bool{}
		for _, request := range requests {
			done[request.ObjectRef.Name] = done[request.ObjectRef.Name] || request.Accepted()
			if request.User.Username != controller {
				t.Errorf("%s: %s of VolumeAttachment %s", request.User.Username, verb, request.ObjectRef.Name)
			}
		}
		if !maps.Equal(done, names) {
			t.Errorf("%s by the controller: %v of %v", verb, done, names)
		}
	}
}

// The drain reports the driver's message within a second, and withdraws the diagnosis when its cause is resolved. It
// does not wait for the volume of a pod that stays.
func volumesTold(t *testing.T) {
	t.Parallel()
	disk := Disk{DetachesAfter: time.Second, FailsOnce: arrayIsBusy}
	w, d := diskWorld(t, disk, disk, disk)
	must(t, w.Apply(t.Context(), DaemonSet("net", Claim("logs"))))
	must(t, w.Settle(t.Context(), 5))
	must(t, d.AddNode(t.Context(), "new"))

	result := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "--wait-volumes", "--ignore-daemonsets",
		"-o", "jsonl")
	expectAttached(t, d, "old", "logs")
	events, err := result.Events()
	must(t, err)
	if last := events[len(events)-1]; last.Type != "finished" {
		t.Errorf("the last event is %s", last.Type)
	}
	seen := map[string][]string{}
	told := map[string]time.Time{}
	for _, event := range events {
		if event.Volume != nil {
			kind := event.Type
			if strings.Contains(event.Volume.Message, arrayIsBusy) {
				kind += "!"
				if told[event.Volume.Volume].IsZero() {
					told[event.Volume.Volume] = event.At
				}
			}
			if of := seen[event.Volume.Volume]; len(of) == 0 || of[len(of)-1] != kind {
				seen[event.Volume.Volume] = append(of, kind)
			}
		}
		if event.Diagnosis != nil {
			volume, _ := strings.CutPrefix(event.Diagnosis.Subject, "PersistentVolume ")
			if event.Diagnosis.Code != "VolumeDetachError" || !strings.Contains(event.Diagnosis.Message, arrayIsBusy) {
				t.Errorf("%s: %+v", event.Type, event.Diagnosis)
			}
			seen["diagnosis of "+volume] = append(seen["diagnosis of "+volume], event.Type)
		}
	}
	for _, was := range d.Attachments("old") {
		volume := was.Volume
		diagnosed := seen["diagnosis of "+volume]
		if volume == d.Volume("logs") {
			if len(seen[volume])+len(diagnosed) > 0 {
				t.Errorf("%s stays, and there is news of it: %v %v", volume, seen[volume], diagnosed)
			}
			continue
		}
		complaint := slices.Index(seen[volume], "volume-waiting!")
		detached := slices.Index(seen[volume], "volume-detached")
		if complaint < 1 || detached != len(seen[volume])-1 {
			t.Errorf("%s: %v, want volume-waiting, then with the driver's words (!), volume-detached",
				volume, seen[volume])
		}
		if !slices.Equal(diagnosed, []string{"diagnosis-raised", "diagnosis-withdrawn"}) {
			t.Errorf("%s: %v, want a diagnosis raised and withdrawn", volume, diagnosed)
		}
		after := told[volume].Sub(was.Failed)
		t.Logf("%s: %v, the driver's words told after %d ms", volume, seen[volume], after.Milliseconds())
		withinASecond(t, volume+": the driver's words were told after", after)
	}
	expectOnlyLooks(t, w)
	settledElsewhere(t, w, d, 6, "data-db-0", "data-db-1", "logs", "shared")
}

// Without --wait-volumes, the drain ends with its last pod, as kubectl's does, while volumes are still attached. It
// sends no request about volumes.
func volumesNotWaitedFor(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	w, d := diskWorld(t, Disk{Held: let}, Disk{Held: let}, Disk{Held: let})
	must(t, d.AddNode(t.Context(), "new"))
	result := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "-o", "json")
	expectAttached(t, d, "old", "data-db-0", "data-db-1", "shared")
	close(let)
	report, err := result.Report()
	must(t, err)
	if report.Outcome != "drained" || len(report.Volumes) != 0 {
		t.Errorf("the report says %s, with volumes %+v", report.Outcome, report.Volumes)
	}
	if looks := expectOnlyLooks(t, w); looks != 0 {
		t.Errorf("%d requests about volumes", looks)
	}
	t.Logf("drained after %.1f s", result.Wall.Seconds())
	must(t, Until(t.Context(), "the volumes are detached", func() (bool, error) {
		left, err := d.On(t.Context(), "old")
		return len(left) == 0, err
	}))
	settledElsewhere(t, w, d, 4, "data-db-0", "data-db-1", "shared")
}

// The driver never detaches one volume, and the kubelet never unmounts another one. With --stuck-volume=fail, the drain
// ends at the volume limit with the outcome `blocked`, and names both.
func volumesStuck(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	t.Cleanup(func() { close(let) })
	const limit = 8 * time.Second // within it the third volume is detached, also on a busy machine
	w, d := diskWorld(t, Disk{Held: let}, Disk{}, Disk{}, Annotate(UnmountsAfter, "24h"))
	must(t, d.AddNode(t.Context(), "new"))
	result := run(t, w, 1, haulout, "drain", w.Node("old"), "--settle=0", "--wait-volumes", "--volume-limit=8s",
		"--stuck-volume=fail", "-o", "json")
	expectAttached(t, d, "old", "data-db-0", "shared")
	report, err := result.Report()
	must(t, err)
	got := map[string]string{}
	for _, volume := range report.Volumes {
		got[volume.Volume] = volume.Outcome
		if (volume.Outcome == "detaching") != (volume.Message != "") {
			t.Errorf("the report has %+v", volume)
		}
	}
	want := map[string]string{
		d.Volume("data-db-0"): "detaching", d.Volume("data-db-1"): "detached", d.Volume("shared"): "detaching",
	}
	if report.Outcome != "blocked" || !maps.Equal(got, want) {
		t.Errorf("the report says %s, volumes %v, want blocked, %v", report.Outcome, got, want)
	}
	var first time.Time
	for _, volume := range report.Volumes {
		if volume.Outcome == "detaching" && (first.IsZero() || volume.UnusedAt.Before(first)) {
			first = volume.UnusedAt
		}
	}
	took := report.FinishedAt.Sub(first)
	t.Logf("ended %d ms after the first of them had lost its last pod\n%s", took.Milliseconds(), result.Stderr)
	if took < limit-50*time.Millisecond {
		t.Errorf("ended %v after that, want %v", took, limit)
	}
	withinASecond(t, "ended after the limit by", max(0, took-limit))
	stuck := 0
	for _, diagnosis := range report.Diagnoses {
		if diagnosis.Code == "VolumeStuck" {
			stuck++
			if volume, _ := strings.CutPrefix(diagnosis.Subject, "PersistentVolume "); got[volume] != "detaching" ||
				!strings.Contains(result.Stderr, volume) {
				t.Errorf("%+v, and the text says\n%s", diagnosis, result.Stderr)
			}
		}
	}
	if stuck == 0 {
		t.Errorf("no volume is diagnosed as stuck: %+v", report.Diagnoses)
	}
	for _, was := range d.Attachments("old") {
		if asked := !was.Asked.IsZero(); asked == (was.Volume == d.Volume("shared")) {
			t.Errorf("%s: the controller has asked for its detaching: %v", was.Volume, asked)
		}
	}
	compare(t, outcome{evicted: "db=2 web=2", cordoned: "old"}, observe(t, w, result))
	expectOnlyLooks(t, w)
}

// A drain ends while the kubelet hangs, and a person uncordons the node, which removes the mark. The next drain finds a
// volume that no pod uses and whose detachment was not requested. Only the Node's status shows that the kubelet still
// uses it.
func volumesLeftBehind(t *testing.T) {
	t.Parallel()
	w, d := diskWorld(t, Disk{}, Disk{}, Disk{}, Annotate(UnmountsAfter, "24h"))
	must(t, d.AddNode(t.Context(), "new"))
	drain := []string{"drain", w.Node("old"), "--settle=0", "--wait-volumes", "--volume-limit=3s", "--stuck-volume=fail",
		"-o", "json"}
	run(t, w, 1, haulout, drain...)
	run(t, w, 0, haulout, "uncordon", w.Node("old"))
	must(t, Until(t.Context(), "the volumes that nothing holds are detached", func() (bool, error) {
		left, err := d.On(t.Context(), "old")
		return slices.Equal(left, []string{d.Volume("shared")}), err
	}))
	result := run(t, w, 1, haulout, drain...)
	expectAttached(t, d, "old", "shared")
	report, err := result.Report()
	must(t, err)
	if len(report.Volumes) != 1 || report.Volumes[0].Volume != d.Volume("shared") ||
		report.Volumes[0].Outcome != "detaching" || report.Outcome != "blocked" {
		t.Errorf("the report says %s, volumes %+v", report.Outcome, report.Volumes)
	}
	if was := d.Attachments("old"); slices.ContainsFunc(was, func(a Attachment) bool {
		return a.Volume == d.Volume("shared") && !a.Asked.IsZero()
	}) {
		t.Errorf("the controller has asked for its detaching: %+v", was)
	}
	t.Logf("ended after %.1f s", result.Wall.Seconds())
}
