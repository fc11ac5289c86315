'use strict';
(() => {
  const $ = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const root = document.documentElement;
  root.classList.add('js');

  // The state of the page is its address: #anchor?backend=gpu&precision=f32&q=words.
  const parse = () => {
    const [id, query = ''] = location.hash.slice(1).split('?');
    return { id: decodeURIComponent(id), query: new URLSearchParams(query) };
  };
  const address = (id, words) => {
    const query = new URLSearchParams();
    for (const input of $('.switch input')) {
      if (input.checked ? !input.defaultChecked : false) query.set(input.name, input.value);
    }
    if (words) query.set('q', words);
    const text = query.toString();
    return '#' + encodeURIComponent(id) + (text ? '?' + text : '');
  };
  const unfold = element => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  };
  const go = () => {
    const { id, query } = parse();
    for (const name of ['backend', 'precision']) {
      const wanted = query.get(name);
      for (const input of $('.switch input[name=' + name + ']')) {
        input.checked = wanted ? input.value === wanted : input.defaultChecked;
      }
    }
    const target = id ? document.getElementById(id) : null;
    if (!target) return;
    unfold(target);
    const filter = target.previousElementSibling;
    if (filter?.matches('.filter')) {
      filter.firstChild.value = query.get('q') || '';
      filter.firstChild.dispatchEvent(new Event('input'));
    }
    target.scrollIntoView();
  };
  addEventListener('hashchange', go);
  addEventListener('change', event => {
    if (event.target.closest('.switch')) history.replaceState(null, '', address(parse().id));
  });
  addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const next = address(link.getAttribute('href').slice(1), link.dataset.q);
    if (next === location.hash) go(); else location.hash = next;
  });

  // Tables: sorted by a click on a head, filtered by words.
  const units = { s: 1, ms: 1e-3, 'µs': 1e-6, ns: 1e-9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, '%': .01, '×': 1, '': 1 };
  const number = text => {
    const parts = /^([-+]?[\d.\u202f]+(?:e[-+]?\d+)?)\s*(\S*)$/.exec(text.trim());
    return parts && parts[2] in units ? parts[1].replaceAll('\u202f', '') * units[parts[2]] : NaN;
  };
  const sort = (table, column, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map(row => {
      const text = row.cells[column].textContent;
      return { row, text, value: number(text), none: text === '–' || text === '' };
    });
    const sign = down ? -1 : 1;
    rows.sort((a, b) => a.none - b.none || sign * (
      isNaN(a.value) || isNaN(b.value) ? a.text.localeCompare(b.text, 'en', { numeric: true }) : a.value - b.value));
    body.append(...rows.map(r => r.row));
  };
  for (const scroll of $('.scroll')) {
    const table = scroll.firstElementChild;
    if (!table.tBodies[0] || table.tBodies[0].rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.title = 'Sort by this column';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const numeric = table.classList.contains('n' + (column + 1));
        const before = head.getAttribute('aria-sort');
        const down = before ? before === 'ascending' : numeric;
        heads.forEach(h => h.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        sort(table, column, down);
      });
    });
    if (table.tBodies[0].rows.length < 8) continue;
    const label = document.createElement('label');
    label.className = 'filter';
    const input = document.createElement('input');
    input.type = 'search';
    input.placeholder = 'Filter rows, for example: gpu csr';
    input.setAttribute('aria-label', 'Filter the rows of ' + table.caption.textContent);
    const count = document.createElement('span');
    label.append(input, count);
    scroll.before(label);
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = words.length ? row.textContent.toLowerCase() : '';
        row.hidden = !words.every(word => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = words.length ? shown + ' of ' + table.tBodies[0].rows.length : '';
    });
    input.addEventListener('change', () => history.replaceState(null, '', address(scroll.id, input.value)));
  }

  // Plots: the mark nearest to the pointer says what it is; a click leads to its matrix.
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  let on = null;
  const said = mark => {
    const title = mark.querySelector('title');
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
    return mark.dataset.tip;
  };
  const page = text => document.getElementById('matrix-' + text.split('\n')[0]);
  const drop = () => { on?.classList.remove('on'); on = null; tip.hidden = true; };
  const nearest = event => {
    const direct = event.target.closest('.bar, .faint, .roof');
    if (direct) return direct;
    const panel = event.target.closest('.panel svg');
    if (!panel) return null;
    let best = null, least = 24 ** 2;
    for (const mark of panel.querySelectorAll('use.mark')) {
      const box = mark.getBoundingClientRect();
      if (!box.width) continue;
      const d = (box.x + box.width / 2 - event.clientX) ** 2 + (box.y + box.height / 2 - event.clientY) ** 2;
      if (d < least) { least = d; best = mark; }
    }
    return best;
  };
  addEventListener('pointermove', event => {
    const mark = event.target.closest ? nearest(event) : null;
    if (!mark || !(mark.dataset.tip || mark.querySelector('title'))) return drop();
    if (mark !== on) {
      drop();
      on = mark;
      mark.classList.add('on');
      const text = said(mark);
      const [first, ...rest] = text.split('\n');
      const strong = document.createElement('b');
      strong.textContent = first;
      tip.replaceChildren(strong, rest.length ? '\n' + rest.join('\n') : '', page(text) ? '\n(click: its page)' : '');
      tip.hidden = false;
    }
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + 'px';
    tip.style.top = (event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 14) + 'px';
  });
  addEventListener('scroll', drop, { passive: true });
  addEventListener('click', event => {
    const mark = event.target.closest('.panel') ? nearest(event) : null;
    const target = mark && (mark.dataset.tip || mark.querySelector('title')) ? page(said(mark)) : null;
    if (target) location.hash = address(target.id);
  });

  // The table of contents: folded on a phone, and it marks where the reader is.
  if (matchMedia('(max-width: 64rem)').matches) $('nav details')[0].open = false;
  const links = new Map($('nav a').map(a => [a.getAttribute('href').slice(1), a]));
  const seen = new Set();
  const watch = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? 'add' : 'delete'](target);
    const first = $('main > section').find(s => seen.has(s));
    for (const [id, link] of links) {
      if (first && id === first.id) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
    }
  }, { rootMargin: '-10% 0px -60% 0px' });
  $('main > section').forEach(s => watch.observe(s));
  go();
})();
