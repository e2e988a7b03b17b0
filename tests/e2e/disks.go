package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Disks is a storage system behind the CSI driver of a world: its CSIDriver and CSINodes, its PersistentVolumes, and
// the external-attacher, which attaches and detaches volumes as kube-controller-manager requests by VolumeAttachments.
type Disks struct {
	Driver string

	world *World
	ctx   context.Context

	mu          sync.Mutex
	disks       map[string]Disk // by name of the PersistentVolume
	attachments map[types.UID]*Attachment
}

// Disk is a PersistentVolume that is bound to a claim, and how the driver attaches and detaches it.
type Disk struct {
	Claim string
	Mode  corev1.PersistentVolumeAccessMode
	// Time from the request to attach until the driver answers.
	AttachesAfter time.Duration
	// Time from the request to detach, and from a failure, until the driver answers.
	DetachesAfter time.Duration
	// If set, the first attempt to detach fails, and this is the driver's message.
	FailsOnce string
	// If set, the volume is not detached before this channel is closed.
	Held <-chan struct{}
	// If set, only nodes of this role can reach the volume.
	OnlyOn string
}

// Attachment is the history of a VolumeAttachment. Times of the attacher's actions are those before its request is
// sent.
type Attachment struct {
	Name, Volume, Node      string
	Attached                bool
	Asked, Failed, Released time.Time
	Gone                    time.Time // when the watch showed that it was deleted

	attaching bool
}

// StartDisks starts the driver. It works until the cluster is stopped, so that the volumes of a removed world are
// detached, too.
func (w *World) StartDisks() (*Disks, error) {
	d := &Disks{
		Driver: w.Name + ".disk.e2e.invalid", world: w, ctx: w.Kubelets.ctx,
		disks: map[string]Disk{}, attachments: map[types.UID]*Attachment{},
	}
	yes := true
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: d.Driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &yes},
	}
	if _, err := w.Client.StorageV1().CSIDrivers().Create(d.ctx, driver, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	source := cache.NewListWatchFromClient(
		w.Client.StorageV1().RESTClient(), "volumeattachments", metav1.NamespaceAll, everything)
	informer := cache.NewSharedInformer(source, &storagev1.VolumeAttachment{}, 0)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { d.observe(object.(*storagev1.VolumeAttachment)) },
		UpdateFunc: func(_, object any) { d.observe(object.(*storagev1.VolumeAttachment)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			d.forget(object.(*storagev1.VolumeAttachment))
		},
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(d.ctx)
	if !cache.WaitForCacheSync(d.ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("the VolumeAttachments could not be listed: %w", d.ctx.Err())
	}
	return d, nil
}

// AddNode registers a node of the world. The driver runs on it.
func (d *Disks) AddNode(ctx context.Context, short string) error {
	name := d.world.Node(short)
	_, err := d.world.Client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: d.Driver, NodeID: "host-" + name}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return d.world.AddNode(ctx, short, short)
}

// Volume returns the name of the PersistentVolume of a claim.
func (d *Disks) Volume(claim string) string { return d.world.Name + "-" + claim }

// Add creates a volume and its claim, and returns when they are bound.
func (d *Disks) Add(ctx context.Context, disk Disk) error {
	name, space, client := d.Volume(disk.Claim), d.world.Name, d.world.Client.CoreV1()
	d.mu.Lock()
	d.disks[name] = disk
	d.mu.Unlock()
	var affinity *corev1.VolumeNodeAffinity
	if disk.OnlyOn != "" {
		affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "role", Operator: corev1.NodeSelectorOpIn, Values: []string{disk.OnlyOn}},
			},
		}}}}
	}
	_, err := client.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: diskSize, AccessModes: []corev1.PersistentVolumeAccessMode{disk.Mode},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: space, Name: disk.Claim},
			NodeAffinity:                  affinity,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: d.Driver, VolumeHandle: "handle-of-" + name},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.PersistentVolumeClaims(space).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: disk.Claim}, Spec: claimSpec(disk.Mode, name),
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return Until(ctx, "claim "+disk.Claim+" is bound", func() (bool, error) {
		claim, err := client.PersistentVolumeClaims(space).Get(ctx, disk.Claim, getOptions)
		return err == nil && claim.Status.Phase == corev1.ClaimBound, err
	})
}

// On reads from the API server which volumes are attached to a node of the world, in the order of their names.
func (d *Disks) On(ctx context.Context, short string) ([]string, error) {
	list, err := d.world.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	volumes := []string{}
	for _, attachment := range list.Items {
		if attachment.Spec.NodeName == d.world.Node(short) {
			volumes = append(volumes, *attachment.Spec.Source.PersistentVolumeName)
		}
	}
	slices.Sort(volumes)
	return volumes, nil
}

// Attachments returns all VolumeAttachments that a node of the world has had, in the order of their volumes.
func (d *Disks) Attachments(short string) []Attachment {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Attachment
	for _, attachment := range d.attachments {
		if attachment.Node == d.world.Node(short) {
			found = append(found, *attachment)
		}
	}
	slices.SortFunc(found, func(a, b Attachment) int { return strings.Compare(a.Volume, b.Volume) })
	return found
}

func (d *Disks) observe(found *storagev1.VolumeAttachment) {
	if found.Spec.Attacher != d.Driver {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	state := d.attachments[found.UID]
	if state == nil {
		state = &Attachment{
			Name: found.Name, Volume: *found.Spec.Source.PersistentVolumeName, Node: found.Spec.NodeName,
		}
		d.attachments[found.UID] = state
	}
	state.Attached = found.Status.Attached
	switch {
	case found.DeletionTimestamp != nil && state.Asked.IsZero():
		state.Asked = time.Now()
		go d.detach(found, state, d.disks[state.Volume])
	case found.DeletionTimestamp == nil && !state.attaching:
		state.attaching = true
		go d.attach(found, d.disks[state.Volume])
	}
}

func (d *Disks) forget(found *storagev1.VolumeAttachment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if state := d.attachments[found.UID]; state != nil {
		state.Gone = time.Now()
	}
}

// attach reads the name by which the driver knows the node, and attaches the volume. Its finalizer keeps the
// VolumeAttachment until the driver has detached the volume.
func (d *Disks) attach(found *storagev1.VolumeAttachment, disk Disk) {
	var host string
	persist(d.ctx, "attacher: cannot find node "+found.Spec.NodeName, func() error {
		node, err := d.world.Client.StorageV1().CSINodes().Get(d.ctx, found.Spec.NodeName, getOptions)
		if err == nil {
			host = node.Spec.Drivers[0].NodeID
		}
		return err
	})
	if host == "" {
		return
	}
	d.patch(found, map[string]any{"metadata": map[string]any{
		"uid": found.UID, "finalizers": []string{"external-attacher/" + d.Driver},
		"annotations": map[string]string{"csi.alpha.kubernetes.io/node-id": host},
	}})
	d.pause(disk.AttachesAfter)
	d.patch(found, map[string]any{
		"metadata": map[string]any{"uid": found.UID}, "status": map[string]any{"attached": true},
	}, "status")
}

func (d *Disks) detach(found *storagev1.VolumeAttachment, state *Attachment, disk Disk) {
	d.pause(disk.DetachesAfter)
	if disk.FailsOnce != "" {
		d.note(&state.Failed)
		failure := map[string]any{"time": metav1.Now(), "message": disk.FailsOnce}
		d.patch(found, map[string]any{
			"metadata": map[string]any{"uid": found.UID}, "status": map[string]any{"detachError": failure},
		}, "status")
		d.pause(disk.DetachesAfter)
	}
	if disk.Held != nil {
		select {
		case <-d.ctx.Done():
		case <-disk.Held:
		}
	}
	d.patch(found, map[string]any{
		"metadata": map[string]any{"uid": found.UID}, "status": map[string]any{"attached": false, "detachError": nil},
	}, "status")
	d.note(&state.Released)
	d.patch(found, map[string]any{"metadata": map[string]any{"uid": found.UID, "finalizers": nil}})
}

func (d *Disks) note(what *time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*what = time.Now()
}

func (d *Disks) pause(long time.Duration) {
	select {
	case <-d.ctx.Done():
	case <-time.After(long):
	}
}

// patch sends the UID, too. UIDs are immutable, so the patch cannot change another object of the same name.
func (d *Disks) patch(found *storagev1.VolumeAttachment, change any, subresources ...string) {
	body, err := json.Marshal(change)
	if err != nil {
		panic(err)
	}
	persist(d.ctx, "attacher: cannot change VolumeAttachment "+found.Name, func() error {
		_, err := d.world.Client.StorageV1().VolumeAttachments().Patch(
			d.ctx, found.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
		return err
	})
}

// Close deletes the objects that belong to no namespace, and does not wait until they are deleted.
func (d *Disks) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for volume := range d.disks {
		_ = d.world.Client.CoreV1().PersistentVolumes().Delete(ctx, volume, metav1.DeleteOptions{})
	}
	for _, node := range d.world.nodes {
		_ = d.world.Client.StorageV1().CSINodes().Delete(ctx, node, metav1.DeleteOptions{})
	}
	_ = d.world.Client.StorageV1().CSIDrivers().Delete(ctx, d.Driver, metav1.DeleteOptions{})
}
