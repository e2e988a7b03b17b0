// Lets a person search for --a-flag. The theme takes a word with a leading dash as one that must not occur, and has no
// setting for that, so the dashes are taken off what it sends to its search. Loaded after iframe-worker.js.
(() => {
  const QUERY = 2; // the type of such a message in the theme
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...others) {
    if (message?.type === QUERY) message = { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, '$1') };
    return send.call(this, message, ...others);
  };
})();
