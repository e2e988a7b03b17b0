// Browsers refuse to start a worker from a file. So a page that was opened from a file searches in an iframe, which this
// class gives the interface of a worker. The theme finds out by the name IFrameWorker that its script runs in a document,
// and its plugin "offline" loads no such script from the network if there is one with the name of this file.
if (location.protocol === 'file:') {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // Without this, some browsers replace the empty document later, and the functions below with it.
      inside.document.open();
      inside.document.write('<body></body>');
      inside.document.close();
      const load = (url) =>
        new Promise((done, failed) => {
          const element = inside.document.createElement('script');
          element.src = url;
          element.onload = done;
          element.onerror = () => failed(new Error(`${url} could not be loaded`));
          inside.document.body.append(element);
        });
      inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
      inside.postMessage = (data) => this.tell(this, data);
      this.ready = load(script);
    }

    tell(whom, data) {
      const event = new MessageEvent('message', { data: structuredClone(data) });
      whom.dispatchEvent(event);
      whom.onmessage?.(event);
    }

    postMessage(data) {
      this.ready.then(() => this.tell(this.frame.contentWindow, data));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
