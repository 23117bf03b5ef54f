// The entry of the page that compares algorithms.

import { openPage } from "../common/open_page.mjs";
import { openCompare } from "./compare.mjs";

await openPage(openCompare);
