// Browsers start no worker from a page that was opened as a file; there, a hidden frame takes the place of the worker
// that searches. The code in the frame sees what a worker would see: postMessage, importScripts and message events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      this.window = frame.contentWindow;
      addEventListener("message", ({ source, data }) => {
        if (source !== this.window) return;
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      });
      const page = this.window.document;
      page.open(); // removes the listeners of the window, so the next one comes later
      this.ready = new Promise((resolve) => {
        this.window.addEventListener("load", resolve);
      });
      page.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = resolve;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script></body>`);
      page.close();
    }

    postMessage(data) {
      this.ready.then(() => this.window.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }

    terminate() {
      this.window.frameElement.remove();
    }
  };
}
