// Evaluated in the page: returns how many pieces of text are seen, and those whose contrast to the background behind
// them is below 4.5 (WCAG 2.2, 1.4.3). A colour that is partly transparent counts as poor, too.
(() => {
  function parse(colour) {
    const part = colour.match(/[\d.]+/g).map(Number);
    return { rgb: part.slice(0, 3), alpha: part[3] ?? 1 };
  }
  function linear(channel) {
    const c = channel / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }
  function luminance(rgb) {
    const [r, g, b] = rgb.map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function behind(element) {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.alpha > 0) return colour;
    }
    return parse('rgb(255, 255, 255)');
  }

  const poor = [];
  let seen = 0;
  function check(element, colour, text) {
    const back = behind(element);
    const front = parse(colour);
    const [light, dark] = [luminance(front.rgb), luminance(back.rgb)].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    ++seen;
    if (contrast < 4.5 || front.alpha < 1 || back.alpha < 1) {
      poor.push(`${text.trim().slice(0, 40)}: ${contrast.toFixed(2)}, ${colour} on ${back.rgb}`);
    }
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) continue;
    check(element, element.namespaceURI.endsWith('svg') ? style.fill : style.color, texts.currentNode.data);
  }
  for (const control of document.querySelectorAll('input, select')) {
    check(control, getComputedStyle(control).color, control.id);
  }
  for (const control of document.querySelectorAll('input')) {
    check(control, getComputedStyle(control, '::placeholder').color, 'placeholder of ' + control.id);
  }
  return { seen, poor };
})()
